"""`traceparent` on a whole hub: from the caller, through the log, to listeners and targets."""

from __future__ import annotations

import time
import uuid
from typing import Any

from tests.e2e.api import item
from tests.e2e.conftest import Hub
from tests.e2e.receivers import receiver
from tests.e2e.test_socket import opened

SESSION = {"schemaVersion": "1.0", "ts": "2026-01-02T03:04:05Z", "type": "call.connecting", "payload": {"callId": "c"}}


def call(number: int) -> str:
    return f"00-{uuid.uuid4().hex}-{number:016x}-01"


def test_the_call_of_an_event_is_passed_on_to_listeners_and_targets(stack: Hub) -> None:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    claims: dict[str, Any] = {"tenant": tenant, "roles": ["producer", "consumer", "operator"]}
    calls = [call(number) for number in range(1, 6)]
    catalog = {
        "event_type": "order.paid",
        "event_version": 1,
        "occurred_at": "2026-01-02T03:04:05Z",
        "source": "shop",
        "idempotency_key": "k1",
        "payload": {"n": 1},
    }
    ways = {
        "/v1/projects/traced/submit_events": {"events": [item("e1")]},
        "/v1/realtime/events": {**SESSION, "eventId": "e2", "sessionId": "s1"},
        "/v1/catalog/orders/events": catalog,
        "/api/v1/events/batch/": {"events": [{"event_id": "e4", "event_type": "note.added"}]},
    }
    scopes = {"sync": "traced", "realtime": "s1", "catalog": "orders", "delivery": tenant}
    sources = [{"contract": contract, "scope": scope} for contract, scope in scopes.items()]
    headers = stack.headers(projects=["traced"], **claims)
    with receiver(lambda _: (200, {})) as hook, opened(stack, "traced", **claims) as listener:
        body = {"type": "external", "mode": "webhook", "url": hook.url, "sources": sources}
        put = stack.http.put("/v1/targets/hook", json=body, headers=headers)
        assert put.status_code == 200, put.text
        listener.ask("sync", {"since_committed_id": 0, "partitions": ["p1"]})
        for (path, sent), of in zip(ways.items(), calls, strict=False):
            for traceparent in (of, call(99)):  # again, in another call: the same event
                answer = stack.http.post(path, json=sent, headers={**headers, "traceparent": traceparent})
                assert answer.status_code == 200, answer.text
        listener.send("submit_events", {"events": [item("e5")]}, traceparent=calls[4])
        heard = listener.receive()
        while heard["type"] != "event_broadcast":
            heard = listener.receive()
        assert (heard["payload"]["id"], heard["traceparent"]) == ("e1", calls[0])
        deadline = time.monotonic() + 60
        while len(hook.posts) < len(calls) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert sorted(posted.headers.get("traceparent", "") for posted in hook.posts) == sorted(calls)
        assert not any(b"traceparent" in posted.body for posted in hook.posts)
    shown = stack.http.get("/v1/ledgers/sync/traced/event", params={"id": "e1"}, headers=headers)
    assert shown.json()["event"]["by"] == {"client_id": "C1", "traceparent": calls[0]}, shown.text
