"""T1, T2, P1: the names that the contract's document gives to types, fields and classes, said once more here, so that
no change of a list in the code goes unseen."""

from __future__ import annotations

import json
import re

import pytest

from millrace.streams.domain.envelope import EVENT_TYPES
from tests.unit.streams.hub import StreamsHub, event, told

TYPES = [
    "RuntimeStateChanged",
    "DeliveryStateTransition",
    "DeliveryRetryScheduled",
    "DeliveryTrace",
    "InboundMessageReceived",
    "ReceiptObserved",
    "InterfaceStateChanged",
    "PolicyChanged",
    "HealthSnapshot",
    "ErrorRaised",
    "StreamGap",
    "ExtensionEvent",
]
REQUIRED = [
    "event_id",
    "runtime_id",
    "stream_id",
    "seq_no",
    "contract_version",
    "ts_ms",
    "event_type",
    "severity",
    "source_component",
]
OPTIONAL = {
    **{name: f"raw-{name}" for name in ("operation_id", "message_id", "peer_id", "correlation_id", "trace_id")},
    "extensions": {"acme.note": 1},
}
SECRET = ["message_payload", "auth_token", "private_key_material", "session_secret"]
SENSITIVE = ["peer_id", "destination_hash", "correlation_id", "trace_id"]
PUBLIC = ["event_id", "runtime_id", "stream_id", "seq_no", "event_type", "severity", "source_component", "ts_ms"]


def test_the_twelve_event_types_are_those_of_the_document() -> None:
    """T2"""
    assert sorted(EVENT_TYPES) == sorted(TYPES)


def test_an_event_is_handed_out_with_the_nine_fields_and_the_optional_ones_that_were_sent() -> None:
    """T1"""
    hub = StreamsHub()
    hub.send(event("bare"), event("full", **OPTIONAL))
    bare, full = told(hub.next())
    assert sorted(bare) == sorted([*REQUIRED, "payload"])
    assert sorted(full) == sorted([*REQUIRED, *OPTIONAL, "payload"])
    assert all(bare[name] is not None for name in REQUIRED)


@pytest.mark.parametrize("name", SECRET)
def test_the_documents_secret_fields_are_never_handed_out(name: str) -> None:
    """P1, P2"""
    hub = StreamsHub()
    hub.send(event("e", payload={name: "s3cret", "kept": 1}))
    assert told(hub.next())[0]["payload"] == {"kept": 1}


@pytest.mark.parametrize("name", SENSITIVE)
def test_the_documents_sensitive_fields_are_handed_out_transformed(name: str) -> None:
    """P1, P3"""
    hub = StreamsHub()
    hub.send(event("e", payload={name: "bob"}))
    assert re.fullmatch("hmac:[0-9a-f]{16}", told(hub.next())[0]["payload"][name])


def test_the_documents_public_fields_are_handed_out_as_they_came() -> None:
    """P1"""
    hub = StreamsHub()
    sent = event("e", payload=dict.fromkeys(PUBLIC, "as it came"))
    hub.send(sent)
    (got,) = told(hub.next())
    assert got["payload"] == sent["payload"]
    assert {name: got[name] for name in PUBLIC if name in sent} == {name: sent[name] for name in PUBLIC if name in sent}
    assert "hmac:" not in json.dumps(got)
