"""D12: the published verifier accepts our signatures, during a rotation too."""

from __future__ import annotations

import base64
import time

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from millrace.delivery.domain.signing import headers, key, message_id, new_secret
from millrace.ledger.domain.errors import BadRequest

NEW, OLD = new_secret(b"n" * 32), new_secret(b"o" * 32)
BODY = '{"event_id":"é","event_type":"note"}'.encode()


@pytest.mark.parametrize("secret", [NEW, OLD])
def test_the_published_verifier_accepts_a_body_signed_with_either_secret_of_a_rotation(secret: str) -> None:
    signed = headers("e1", int(time.time()), BODY, [NEW, OLD])
    assert Webhook(secret).verify(BODY, signed) == {"event_id": "é", "event_type": "note"}
    assert signed["webhook-signature"].count("v1,") == 2


@pytest.mark.parametrize(
    ("change", "value"), [("webhook-id", "e2"), ("webhook-timestamp", "1"), ("webhook-signature", "v1,AAAA")]
)
def test_the_verifier_refuses_what_was_changed(change: str, value: str) -> None:
    signed = headers("e1", int(time.time()), BODY, [NEW])
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(BODY, signed | {change: value})
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(BODY + b" ", signed)
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(BODY, signed)


def test_we_sign_as_the_verifier_does() -> None:
    from datetime import UTC, datetime

    at = datetime.fromtimestamp(1_700_000_000, UTC)
    theirs = Webhook(NEW).sign("e1", at, BODY.decode())
    assert headers("e1", 1_700_000_000, BODY, [NEW])["webhook-signature"] == theirs


def test_a_message_id_is_the_same_at_every_attempt_and_always_a_header() -> None:
    assert message_id(["order-17:paid_1"]) == "order-17:paid_1"
    odd = message_id(["a.b\r\nX: y é"])
    assert odd == message_id(["a.b\r\nX: y é"])
    assert odd.startswith("msg_")
    assert odd.isascii()
    assert "." not in odd
    assert message_id(["a", "bc"]) != message_id(["ab", "c"])
    assert message_id(["a", "b"]).startswith("batch_")


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_!!!", "whsec_" + base64.b64encode(b"short").decode(), "é"])
def test_a_bad_secret_is_refused_and_never_shown(secret: str) -> None:
    with pytest.raises(BadRequest) as refused:
        key(secret)
    assert not secret or secret not in refused.value.message
