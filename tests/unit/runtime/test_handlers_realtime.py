"""R3, R4: whatever is refused as invalid by the realtime door is counted and logged, and neither says a value."""

from __future__ import annotations

import base64
import io
import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from aws_lambda_powertools.logging import Logger

from millrace.ledger.domain.access import Identity
from millrace.runtime import bearer, observe
from tests.unit.runtime.test_handlers import EVERYONE, answer, deployment, sample

SECRET = "s3cret-value"
EVENT = json.loads(sample("publish")["body"])


@pytest.fixture(autouse=True)
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with deployment(monkeypatch):
        yield


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    logger = Logger(service=uuid.uuid4().hex, stream=text)
    monkeypatch.setattr(observe, "logger", lambda: logger)
    return text


def metrics() -> dict[str, int]:
    event = sample("replay")
    event["routeKey"] = event["requestContext"]["routeKey"] = "GET /v1/realtime/metrics"
    event["queryStringParameters"] = {}
    counted: dict[str, int] = answer("replay", event)
    return {name: counted[name] for name in ("emitted", "invalid", "deduped")}


def sent(body: str, **changes: Any) -> dict[str, Any]:
    event = sample("publish")
    return {**event, "body": body, **changes}


def headers(**changed: str) -> dict[str, str]:
    return {**sample("publish")["headers"], **changed}


LARGE = {**EVENT, "payload": {**EVENT["payload"], "note": SECRET * 9_000}}
UNREADABLE = {
    "no JSON": (sent(f'{{"eventId": "{SECRET}'), 400),
    "nothing": (sent(""), 400),
    "a key twice": (sent(f'{{"a": 1, "a": "{SECRET}"}}'), 400),
    "NaN": (sent('{"a": NaN}'), 400),
    "another type": (sent(json.dumps(EVENT), headers=headers(**{"content-type": "text/plain"})), 400),
    "no base64": (sent("*", isBase64Encoded=True), 400),
    "no UTF-8": (sent(base64.b64encode(b'{"a": "\xff"}').decode(), isBase64Encoded=True), 400),
    "too deep": (sent("[" * 100 + "]" * 100), 400),
    "an empty batch": (sent('{"events": []}'), 400),
    "a batch with another key": (sent(json.dumps({"events": [EVENT], "x": SECRET})), 400),
    "a batch too long": (sent(json.dumps({"events": [EVENT] * 101})), 400),
    "a body over the limit": (sent(json.dumps({"a": SECRET * 90_000})), 413),
    "an event over the limit": (sent(json.dumps(LARGE)), 413),
    "no event": (sent(json.dumps([SECRET])), 400),
    "a rule broken": (sent(json.dumps({**EVENT, "type": SECRET})), 400),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_r3_r4_what_cannot_be_taken_is_counted_once_and_logged_without_a_value(name: str, written: io.StringIO) -> None:
    event, status = UNREADABLE[name]
    body = answer("publish", event, status)
    assert body["ok"] is False
    assert metrics() == {"emitted": 0, "invalid": 1, "deduped": 0}
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    (failed,) = (line for line in lines if line["message"] == "realtime_event_validation_failed")
    assert failed["level"] == "WARNING"
    assert failed["tenant"] == "default"
    assert all(error["message"] and "pointer" in error for error in failed["errors"])
    assert failed["errors"]
    (request,) = (line for line in lines if line["message"] == "request" and line["route"].startswith("POST"))
    assert (request["status"], request["invalid"]) == (status, 1)
    assert SECRET not in written.getvalue()
    assert SECRET not in json.dumps(body)


def test_r4_of_a_batch_each_invalid_event_is_counted(written: io.StringIO) -> None:
    batch = [EVENT, {**EVENT, "type": "x"}, {**LARGE, "eventId": "large"}, EVENT, 5]
    answer("publish", sent(json.dumps({"events": batch})))
    assert metrics() == {"emitted": 1, "invalid": 3, "deduped": 1}
    assert written.getvalue().count("realtime_event_validation_failed") == 3


@pytest.mark.parametrize("token", [None, "reader"])
def test_whoever_may_not_publish_counts_nothing(
    token: str | None, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R4: counters are a tenant's; a stranger, or a reader, does not move them."""

    class Readers:
        def verify(self, _token: str) -> Identity:
            return replace(EVERYONE, roles=frozenset({"consumer"}))

    monkeypatch.setattr(bearer, "tokens", Readers)
    event = sent("{") if token else sent("{", headers={"content-type": "application/json"})
    answer("publish", event, 403 if token else 401)
    assert metrics()["invalid"] == 0
    assert "realtime_event_validation_failed" not in written.getvalue()
