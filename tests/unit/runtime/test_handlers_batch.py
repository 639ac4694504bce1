"""The batch door on every shape in which a gateway hands on a body, and its refusals as clients in use read them."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from millrace.delivery.domain.outcomes import Response, Verdict, judge
from millrace.delivery.domain.states import Status
from millrace.delivery.doors.bodies import MOST_SENT, MOST_UNPACKED
from millrace.runtime import bearer
from millrace.runtime.http import Request
from tests.unit.runtime.test_handlers import aws, changed, invoke, sample
from tests.unit.runtime.test_handlers_delivery import OPERATOR, answer, compressed, operator

__all__ = ["aws", "operator"]

PLAIN = sample("ingest")["body"].encode()
SAMPLES = ["ingest", "ingest_rest"]
"""Through the HTTP API, and through the REST API, which unpacks."""


def shaped(name: str, body: str, *, is_base64: bool, **headers: str) -> dict[str, Any]:
    event = sample(name)
    kept = {key: value for key, value in event["headers"].items() if key.lower() != "content-encoding"}
    return {**event, "headers": {**kept, **headers}, "body": body, "isBase64Encoded": is_base64}


def as_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


GZIP = {"Content-Encoding": "gzip"}
SHAPES = {
    "plain": (PLAIN.decode(), False, {}),
    "plain, base64": (as_base64(PLAIN), True, {}),
    "gzip, base64": (as_base64(gzip.compress(PLAIN)), True, GZIP),
    "gzip, base64, header in other letters": (as_base64(gzip.compress(PLAIN)), True, {"content-encoding": "X-GZIP "}),
    "gzip, base64, header gone": (as_base64(gzip.compress(PLAIN)), True, {}),
    "unpacked, header still there": (PLAIN.decode(), False, GZIP),
    "unpacked, base64, header still there": (as_base64(PLAIN), True, GZIP),
}


@pytest.mark.parametrize("gateway", SAMPLES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_is_taken_in_every_shape_a_gateway_gives_it(gateway: str, shape: str) -> None:
    """D8"""
    body, is_base64, headers = SHAPES[shape]
    results = answer("ingest", shaped(gateway, body, is_base64=is_base64, **headers))["results"]
    assert results == [{"event_id": "build-17-done", "status": "success"}]


def test_a_route_has_one_name_whichever_gateway_was_used() -> None:
    requests = [Request(sample("ingest")), Request(sample("ingest_rest"))]
    assert [(one.method, one.route) for one in requests] == [("POST", "POST /api/v1/events/{proxy+}")] * 2


def test_a_compressed_body_that_a_gateway_has_damaged_is_told_from_one_it_has_unpacked() -> None:
    """D8: what is left of it cannot be read, and the same body as bytes or plain is welcome."""
    damaged = gzip.compress(PLAIN).decode("utf-8", errors="replace")
    told = answer("ingest", shaped("ingest", damaged, is_base64=False, **GZIP), 415)
    assert (told["code"], told["details"]["field"]) == ("bad_request", "content-encoding")
    assert "application/octet-stream" in told["error"] == told["message"]


def test_a_body_that_was_unpacked_on_the_way_may_be_as_large_as_one_that_we_unpack() -> None:
    """D8"""
    event = {"event_id": "e1", "event_type": "t"}
    padded = json.dumps({"events": [event]}) + " " * MOST_SENT
    assert answer("ingest", shaped("ingest", padded, is_base64=False, **GZIP))["results"][0]["status"] == "success"
    answer("ingest", shaped("ingest", padded, is_base64=False), 413)
    answer("ingest", shaped("ingest", " " * (MOST_UNPACKED + 1), is_base64=False, **GZIP), 413)


def test_a_bomb_is_refused_whether_or_not_its_header_warns_of_it() -> None:
    """D8"""
    bomb = gzip.compress(b" " * (64 * 1024 * 1024))
    for headers in (GZIP, {}):
        assert answer("ingest", shaped("ingest", as_base64(bomb), is_base64=True, **headers), 413)["error"]
    answer("ingest", compressed(gzip.compress(gzip.compress(PLAIN))), 400)


def refused(status: int, body: Any, **changes: Any) -> Any:
    return answer("ingest", {**changed(sample("ingest"), body), **changes}, status)


def test_a_batch_of_which_nothing_can_be_kept_says_of_each_event_why() -> None:
    """D8: in the words of the contract in use, and of ours."""
    bodies = [{"event_id": "e1"}, {"event_id": "e2", "event_type": " "}, 7]
    told = refused(400, {"events": bodies})
    assert told["details"] == [
        {"event_id": "e1", "reason": "event_type must be a string, not null or missing"},
        {"event_id": "e2", "reason": "event_type must not be blank"},
        {"event_id": None, "index": 2, "reason": "an event is an object, not a number"},
    ]
    assert [one["status"] for one in told["results"]] == ["rejected"] * 3
    assert told["error"] == told["message"] == "No event of the batch can be kept."
    assert (told["code"], told["problem"]) == ("bad_request", {"field": "events"})


def test_a_batch_that_is_none_blames_no_event() -> None:
    """D8"""
    bodies: list[Any] = [{"events": []}, {"events": {}}, [], {"events": [{}] * 1001}]
    for body in bodies:
        told = refused(400, body)
        assert (told["details"], told["problem"]["field"], "results" in told) == ([], "events", False)
        assert "list of 1 to 1000" in told["error"]


def test_our_own_client_reads_why_from_our_own_refusal() -> None:
    """D8"""
    body = json.dumps(refused(400, {"events": [{"event_id": "e1"}]}))
    judged = judge(Response(400, body.encode()), ["e1"], 0)
    assert judged.verdict is Verdict.RESULTS
    assert (judged.results["e1"].status, judged.results["e1"].error) == (
        Status.REJECTED,
        "event_type must be a string, not null or missing",
    )


def test_who_may_not_enter_is_told_so_under_error_too() -> None:
    """D8"""
    headers = {"content-type": "application/json"}
    told = refused(401, {"events": []}, headers=headers)
    assert told["error"] == told["message"]
    assert (told["code"], told["details"]) == ("auth_failed", {"field": "authorization"})
    answered = invoke("ingest", {**sample("ingest"), "headers": headers})
    assert answered["headers"]["www-authenticate"] == "Bearer"


def test_a_token_that_does_not_reach_the_journal_is_told_so_under_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """D8"""
    reader = replace(OPERATOR, roles=frozenset({"consumer"}))
    monkeypatch.setattr(bearer, "tokens", lambda: SimpleNamespace(verify=lambda _: reader))
    told = refused(403, {"events": []})
    assert (told["code"], told["details"]) == ("forbidden", {"role": "producer"})
    assert told["error"] == told["message"]
