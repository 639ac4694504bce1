"""The realtime contract on a whole hub: doors, counters, parallel publishers, the live tail."""

from __future__ import annotations

import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.domain.names import realtime_ledger
from millrace.realtime.adapters.time_index import DynamoTimes
from tests.e2e.api import log_lines
from tests.e2e.conftest import Hub
from tests.e2e.test_socket import opened

EVENTS = "/v1/realtime/events"
SESSIONS = int(os.environ.get("MILLRACE_SESSIONS", "15"))
CROWD = int(os.environ.get("MILLRACE_CROWD", "160"))


def event(id_: str, session: str, second: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "eventId": id_,
        "sessionId": session,
        "ts": f"2026-02-16T10:00:{second % 60:02d}.000Z",
        "type": "call.started",
        "payload": {"callId": "c1", "channel": "voice", "direction": "inbound", "provider": "p"},
        "schemaVersion": "1.0",
        **changes,
    }


def publish(hub: Hub, body: Any, **claims: Any) -> httpx.Response:
    return hub.http.post(EVENTS, json=body, headers=hub.headers(**claims))


def publish_until_answered(hub: Hub, batch: list[dict[str, Any]]) -> httpx.Response:
    """As a publisher should: the same ids again when too many write at once, or a function ran out of time."""
    for _ in range(60):
        response = publish(hub, {"events": batch})
        if response.status_code not in (429, 500, 502, 503, 504):
            return response
    raise AssertionError("no answer after 60 tries")


def get(hub: Hub, path: str, **claims: Any) -> httpx.Response:
    return hub.http.get(f"/v1/realtime{path}", headers=hub.headers(**claims))


def test_r5_published_twice_is_stored_once(stack: Hub) -> None:
    first, again = publish(stack, event("twice", "s-twice")), publish(stack, event("twice", "s-twice"))
    assert first.json() == {"ok": True, "deduped": False, "event": {**event("twice", "s-twice"), "sequence": 1}}
    assert again.json() == {**first.json(), "deduped": True}
    other = publish(stack, event("twice", "elsewhere"))
    assert (other.status_code, other.json()["ok"], other.json()["code"]) == (409, False, "EVENT_ID_CONFLICT")
    assert "s-twice" not in other.text


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"type": "call.exploded"}, "/type"),
        ({"type": "weather.changed"}, "/type"),
        ({"schemaVersion": "2.0"}, "/schemaVersion"),
        ({"timestamp": "2026-02-16T10:00:00Z"}, "/timestamp"),
        ({"mood": "good"}, "/mood"),
        ({"payload": {}}, "/payload/callId"),
        ({"ts": "yesterday"}, "/ts"),
        ({"eventId": " "}, "/eventId"),
    ],
)
def test_r3_an_invalid_event_is_refused_with_pointers(stack: Hub, changes: dict[str, Any], pointer: str) -> None:
    response = publish(stack, event("bad", "s-bad", **changes))
    body = response.json()
    assert (response.status_code, body["ok"], body["code"]) == (400, False, "INVALID_REALTIME_EVENT")
    assert body["retryable"] is False
    assert pointer in [error["pointer"] for error in body["errors"]]
    assert get(stack, "/sessions/s-bad/events").json()["events"] == []


@pytest.mark.parametrize(
    "body", ["", "nonsense", "[1]", '{"a": NaN}', '{"a":1,"a":2}', "[" * 70 + "]" * 70, '{"events":[]}']
)
def test_what_is_no_request_is_refused_in_the_contracts_words(stack: Hub, body: str) -> None:
    headers = {**stack.headers(), "Content-Type": "application/json"}
    response = stack.http.post(EVENTS, content=body, headers=headers)
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_REALTIME_EVENT")


def test_legacy_keys_are_renamed_at_the_door(stack: Hub) -> None:
    old = event("legacy", "s-legacy")
    old["timestamp"], old["version"] = old.pop("ts"), old.pop("schemaVersion")
    assert publish(stack, old).json()["event"] == {**event("legacy", "s-legacy"), "sequence": 1}


def test_r9_a_batch_has_one_result_each(stack: Hub) -> None:
    batch = [
        event("b1", "s-batch"),
        event("b2", "s-batch", type="nope"),
        event("b3", "s-batch2"),
        event("b1", "s-batch"),
    ]
    body = publish(stack, {"events": batch}).json()
    assert body["ok"] is False
    assert [r["ok"] for r in body["results"]] == [True, False, True, True]
    assert [r.get("deduped") for r in body["results"]] == [False, None, False, True]


def test_r4_counters_are_right_across_instances(stack: Hub) -> None:
    claims = {"tenant": "counting"}
    calls = [event(f"c{n % 20}", f"s-count-{n % 3}") for n in range(60)] + [event("x", "s", type="no")] * 5
    with ThreadPoolExecutor(8) as pool:
        answers = [r.json() for r in pool.map(lambda e: publish(stack, e, **claims), calls)]
    metrics = get(stack, "/metrics", **claims).json()
    emitted = sum(a["ok"] and not a["deduped"] for a in answers)
    deduped = sum(bool(a.get("deduped")) for a in answers)
    assert metrics == {"ok": True, "emitted": emitted, "invalid": 5, "deduped": deduped}


def test_r6_r7_replay_pages_and_a_checkpoint_that_never_goes_back(stack: Hub) -> None:
    publish(stack, {"events": [event(f"r{n}", "s-replay", n) for n in range(5)]})
    page = get(stack, "/sessions/s-replay/events?afterSequence=1&limit=2").json()
    assert [e["sequence"] for e in page["events"]] == [2, 3]
    assert (page["hasMore"], page["watermark"]["sequence"]) == (True, 3)

    def checkpoint(place: dict[str, Any]) -> dict[str, Any]:
        body = {"consumerId": "ui", "watermarkTs": place["ts"], "watermarkEventId": place["eventId"]}
        response = stack.http.post("/v1/realtime/sessions/s-replay/checkpoint", json=body, headers=stack.headers())
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    assert checkpoint(page["watermark"]) == {"ok": True, "applied": True}
    assert checkpoint({"ts": "2026-02-16T09:00:00Z", "eventId": "r0"}) == {"ok": True, "applied": False}
    rest = get(stack, "/sessions/s-replay/events?consumerId=ui").json()
    assert [e["eventId"] for e in rest["events"]] == ["r3", "r4"]


BAD_QUERIES = ["afterSequence=-1", "afterSequence=x", "limit=0", "limit=501", "afterTs=2026-02-16T10:00:00Z"]


@pytest.mark.parametrize("query", BAD_QUERIES)
def test_bad_replay_parameters_are_named(stack: Hub, query: str) -> None:
    response = get(stack, f"/sessions/s-any/events?{query}")
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] != ""


def test_r8_the_transcript_shows_final_text(stack: Hub) -> None:
    def said(id_: str, second: int, kind: str) -> dict[str, Any]:
        payload = {"utteranceId": "u1", "speaker": "user", "text": id_, "startMs": 0, "endMs": 5}
        return event(id_, "s-talk", second, type=f"transcript.{kind}", payload=payload)

    publish(stack, {"events": [said("t1", 1, "partial"), said("t2", 2, "final"), said("t3", 9, "partial")]})
    body = get(stack, "/sessions/s-talk/transcript").json()
    assert [(u["text"], u["final"]) for u in body["utterances"]] == [("t2", True)]
    rebuilt = get(stack, "/sessions/s-talk/transcript?rebuild=true", roles=["consumer", "operator"])
    assert rebuilt.json() == body
    assert get(stack, "/sessions/s-talk/transcript?rebuild=true").status_code == 403


def test_r10_the_schemas_are_served(stack: Hub) -> None:
    assert get(stack, "/schemas/call.started").json()["properties"]["payload"]
    assert get(stack, "/schemas/no.such").status_code == 404


def test_a_session_the_token_does_not_reach_is_forbidden(stack: Hub) -> None:
    claims = {"partitions": ["session:mine"]}
    assert publish(stack, event("f1", "theirs"), **claims).status_code == 403
    for path in ("events", "transcript"):
        assert get(stack, f"/sessions/theirs/{path}", **claims).status_code == 403
    assert publish(stack, event("f2", "mine"), **claims).status_code == 200


def test_sixteen_publishers_into_one_session_and_into_many_lose_nothing(stack: Hub) -> None:
    rng = random.Random(5)
    crowd = [event(f"one-{n}", "s-crowd", n) for n in range(CROWD)]
    spread = [event(f"many-{n}", f"s-spread-{n % SESSIONS}", n) for n in range(8 * SESSIONS)]
    batches = [some[start : start + 20] for some in (crowd, spread) for start in range(0, len(some), 20)]
    batches += rng.sample(batches, 10)
    rng.shuffle(batches)
    with ThreadPoolExecutor(16) as pool:
        for response in pool.map(lambda batch: publish_until_answered(stack, batch), batches):
            assert response.json()["ok"], response.text
    assert sequences(stack, "s-crowd") == list(range(1, CROWD + 1))
    for number in range(SESSIONS):
        assert sequences(stack, f"s-spread-{number}") == list(range(1, 9))


def sequences(stack: Hub, session: str) -> list[int]:
    page = get(stack, f"/sessions/{session}/events?afterSequence=0&limit=500").json()
    assert page["hasMore"] is False
    return [one["sequence"] for one in page["events"]]


def test_r9_a_session_is_tailed_live_without_loss_or_repeat(stack: Hub) -> None:
    publish(stack, {"events": [event(f"l{n}", "s-live", n) for n in range(3)]})
    with opened(stack, "demo") as socket:
        socket.send("subscribe", {"kind": "session", "session_id": "s-live", "after_sequence": 1})
        assert socket.receive()["type"] == "subscribed"
        for n in range(3, 10):
            publish(stack, event(f"l{n}", "s-live", n))
        got = [socket.receive()["payload"] for _ in range(9)]
    assert [(p["event"]["sequence"], p["event"]["eventId"]) for p in got] == [(n + 1, f"l{n}") for n in range(1, 10)]
    assert [p["phase"] for p in got] == ["snapshot"] * 2 + ["live"] * 7


def test_r3_the_log_names_the_errors_and_no_values(stack: Hub) -> None:
    told, lines = list[Any](), list[str]()
    for _ in range(100):
        publish(stack, event("logged", "s-log", payload={"callId": 5, "secret": "hunter2-value"}))
        lines = log_lines(stack, "publish")
        failed = [json.loads(line) for line in lines if '"realtime_event_validation_failed"' in line]
        told = [error for line in failed for error in line["errors"] if error["pointer"] == "/payload/callId"]
        if told:
            break
    assert told
    assert not [line for line in lines if "hunter2" in line]


def test_r6_a_long_session_is_indexed_and_read_in_time_order(stack: Hub) -> None:
    """Whoever moves the fan-out's cursor over a bucket rings, the index follows, and a late event is found and told."""
    session = realtime_ledger("default", "s-long")
    moments = [f"2026-02-16T10:{n // 20:02}:{n % 20:02}.500Z" for n in range(1_100)]
    events = [event(f"long-{n:04}", "s-long", ts=ts) for n, ts in enumerate(moments)]
    for start in range(0, len(events), 100):
        assert publish_until_answered(stack, events[start : start + 100]).status_code == 200
    times, tries = DynamoTimes(stack.client("dynamodb"), stack.tables["index"], in_turn), iter(range(600))
    while times.note(session) is None:
        assert next(tries, None) is not None, "a minute, and no bucket is indexed"
        time.sleep(0.1)
    page = get(stack, "/sessions/s-long/events?limit=500").json()
    seen, place = [one["eventId"] for one in page["events"]], page["watermark"]
    assert publish(stack, event("late", "s-long", ts="2026-02-16T10:00:00.000Z")).status_code == 200
    while page["hasMore"]:
        after = f"afterTs={place['ts']}&afterEventId={place['eventId']}"
        page = get(stack, f"/sessions/s-long/events?limit=500&{after}").json()
        assert page["late"] == {"count": 1, "afterSequence": len(seen)}
        seen, place = [*seen, *(one["eventId"] for one in page["events"])], page["watermark"]
    assert seen == [one["eventId"] for one in events]
