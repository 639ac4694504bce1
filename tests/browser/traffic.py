"""Something to look at: events, sessions, runtimes, targets and policies, put into a hub through its own doors."""

from __future__ import annotations

import gzip
import hashlib
import json
import time
from collections.abc import Sequence
from typing import Any

from millrace.lake.application.editions import Editions
from millrace.lake.domain.archive import EventWriter
from millrace.lake.domain.edition import QUARANTINE, Edition, File, Segment
from tests.e2e.conftest import Hub
from tests.e2e.lake import eventually, operator
from tests.e2e.receivers import Posted, Reply
from tests.e2e.streams_api import Runtime, event, negotiated

EVERYTHING: dict[str, Any] = {
    "client_id": "ops",
    "projects": ["shop", "demo"],
    "roles": ["operator", "consumer", "producer"],
}
PROJECT, SESSION, RUNTIME = "shop", "call-42", "pi-7"


def sent(hub: Hub, method: str, path: str, body: Any = None) -> Any:
    response = hub.http.request(method, path, json=body, headers=hub.headers(**EVERYTHING))
    assert response.is_success, (path, response.text)
    return response.json()


def submit(hub: Hub, *items: dict[str, Any], project: str = PROJECT) -> None:
    results = sent(hub, "POST", f"/v1/projects/{project}/submit_events", {"events": list(items)})["results"]
    assert {result["status"] for result in results} == {"committed"}, results


def order(number: int, kind: str = "order.paid", **payload: Any) -> dict[str, Any]:
    told = {
        "order": number,
        "amount": {"value": 100 + number, "currency": "EUR"},
        "lines": [{"sku": "A-1", "count": 2}],
    }
    event_ = {"type": kind, "payload": {**told, **payload}}
    return {"id": f"order-{number}-{kind.partition('.')[2]}", "partitions": ["orders"], "event": event_}


def journal(hub: Hub, *ids: str) -> None:
    """Into the journal of the team, from which targets are served."""
    events = [{"event_id": id_, "event_type": "build.done", "payload": {"build": id_}} for id_ in ids]
    sent(hub, "POST", "/api/v1/events/batch/", {"events": events})


def target(hub: Hub, id_: str, url: str | None, *sources: tuple[str, str]) -> None:
    body: dict[str, Any] = {"sources": [{"contract": contract, "scope": scope} for contract, scope in sources]}
    body |= {"type": "external", "url": url} if url else {"type": "stub"}
    sent(hub, "PUT", f"/v1/targets/{id_}", body)


def give_up(posted: Posted) -> Reply:
    """What a receiver says that never wants these events."""
    failed = [
        {"event_id": one["event_id"], "status": "terminal_failed", "error": "no such build"} for one in posted.events
    ]
    return 200, {"results": failed}


def say(hub: Hub, *lines: tuple[str, str], session: str = SESSION, first: int = 0, kind: str = "final") -> None:
    for number, (speaker, text) in enumerate(lines, start=first):
        said = {
            "utteranceId": f"u{number}",
            "speaker": speaker,
            "text": text,
            "startMs": number * 4000,
            "endMs": number * 4000 + 3000,
        }
        publish(hub, f"said-{session}-{kind}-{number}", f"transcript.{kind}", said, session)


def publish(hub: Hub, id_: str, kind: str, payload: dict[str, Any], session: str = SESSION) -> None:
    ts = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    told = {"eventId": id_, "sessionId": session, "ts": ts, "type": kind, "payload": payload, "schemaVersion": "1.0"}
    sent(hub, "POST", "/v1/realtime/events", told)


def runtime(hub: Hub, id_: str = RUNTIME) -> Runtime:
    """Its stream `main` has lost its first four events; its marker was moved twice."""
    made = negotiated(hub, id_, EVERYTHING)
    now = int(time.time() * 1000)
    made.emit("main", *(event(f"health-{number}", ts_ms=now, payload={"load": number / 10}) for number in range(1, 9)))
    made.emit("main", event("state-1", ts_ms=now, event_type="RuntimeStateChanged", payload={"to": "running"}))
    made.prune("main", 4)
    for name, lat, lon in (("camp", 47.1, 8.2), ("ridge", 47.14, 8.31), ("bridge", 47.07, 8.26)):
        place = {"marker_id": name, "label": name.title(), "position": {"lat": lat, "lon": lon}}
        made.good("POST", "/markers", json=place)
    for revision, lat in ((1, 47.115), (2, 47.13)):
        moved = {"position": {"lat": lat, "lon": 8.21 + revision / 50}, "expected_revision": revision}
        made.good("PATCH", "/markers/camp/position", json=moved)
    return made


CONVERSATION: Sequence[tuple[str, str]] = (
    ("agent", "Good morning, you are speaking with the workshop. What can I do for you?"),
    ("user", "The order from Tuesday has not arrived. It was to be here yesterday."),
    ("agent", "I see it: it left the warehouse last night, and the carrier has it."),
    ("user", "Then I will wait for it. Thank you."),
)


def fill(hub: Hub, url: str) -> None:
    """A hub as it looks on a working day: a target at `url`, which is expected to give up on what it gets."""
    for start in range(0, 240, 60):
        submit(hub, *(order(start + number) for number in range(60)))
    submit(hub, *(order(number, "order.shipped", carrier="north") for number in range(12)))
    submit(
        hub, {"id": "note-1", "partitions": ["notes"], "event": {"type": "note", "payload": "hello"}}, project="demo"
    )
    publish(
        hub,
        "call-started",
        "call.started",
        {"callId": "c1", "channel": "voice", "direction": "inbound", "provider": "acme"},
    )
    say(hub, *CONVERSATION)
    runtime(hub)
    target(hub, "archive-hub", None, ("sync", PROJECT), ("delivery", "*"))
    target(hub, "builds", url, ("delivery", "*"))
    journal(hub, *(f"build-{number}" for number in range(1, 9)))
    quarantined(hub)
    sent(hub, "PUT", f"/v1/retention/sync/{PROJECT}", {"max_age_days": 90, "advance_to": 40})
    sent(hub, "PUT", "/v1/retention/realtime/*", {"max_events": 10_000})
    eventually(lambda: is_delivered(hub), "the targets did not get what is theirs")


def quarantined(hub: Hub) -> None:
    """As compaction leaves a line behind whose version nobody registered."""
    objects = operator(hub).objects
    line: dict[str, Any] = {
        "committed_at": 1_770_000_000_000,
        "ledger": "catalog#default#orders",
        "tenant": "default",
        "partitions": [],
    }
    line |= {"event_type": "order.placed", "event_version": 9, "idempotency_key": "orders/4", "sequence_position": 4}
    line |= {"occurred_at": "2026-02-01T10:00:00Z", "source": "tests", "payload": {"n": 1}}
    writer = EventWriter()
    writer.add_line(line)
    origin = writer.finish()
    objects.put(origin.name, origin.data)
    text = gzip.decompress(origin.data).decode().strip()
    entry: dict[str, Any] = {
        "id": "9c1f",
        "reason": "unknown_version",
        "field": "event_version",
        "object": origin.name,
        "line": text,
    }
    entry |= {"sha256": hashlib.sha256(text.encode()).hexdigest(), "bytes": len(text)}
    entry |= {
        name: line[name] for name in ("ledger", "sequence_position", "event_type", "event_version", "idempotency_key")
    }
    data, name = gzip.compress(json.dumps(entry).encode() + b"\n"), "lake/runs/r1/quarantine/one.gz"
    objects.put(name, data)
    editions = Editions(objects)
    segment = Segment("r1", 1, (File(name, len(data)),))
    assert editions.publish(editions.current(), Edition(1, "r1", int(time.time() * 1000)).having(QUARANTINE, [segment]))


def is_delivered(hub: Hub) -> bool:
    """The stub has everything, and the other target has given up on its eight."""
    stub, builds = sent(hub, "GET", "/v1/delivery/status")["delivery_targets"]
    return bool(stub["delivered_count"] == 260 and builds["deliveries"]["terminal_failed"] == 8)
