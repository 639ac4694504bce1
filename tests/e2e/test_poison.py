"""A ledger that was stored under a name no queue takes: fan-out, index, archive and sweep go on, for it and for all."""

from __future__ import annotations

import json
import time

from millrace.ledger.adapters.dynamodb.log import DynamoLog
from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.domain.canonical import digest
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Origin, Page, Record
from tests.e2e.api import item, post, submit
from tests.e2e.conftest import Hub
from tests.e2e.lake import eventually, operator
from tests.e2e.test_socket import opened

POISON = "poison\uffff\x00"


def plant(hub: Hub) -> Ledger:
    """As it was acknowledged before there was a rule for names."""
    ledger = Ledger.of("sync", "default", POISON)
    client = hub.client("dynamodb")
    DynamoState(client, hub.tables["state"]).register(ledger)
    body = b'{"event":{"payload":1,"type":"t"}}'
    record = Record("planted", digest(body), body, ("p1",))
    page = Page(1, (record,), int(time.time() * 1000) - 600_000, Origin("C1"), b"planted")
    assert DynamoLog(client, hub.tables["log"], Threads()).append(ledger, page) is None
    return ledger


def test_no_name_stops_a_shared_worker(stack: Hub) -> None:
    poison = plant(stack)
    with opened(stack, "neighbour") as socket:
        socket.ask("sync", {"since_committed_id": 0})
        submit(stack, "neighbour", item("n1", 1))
        assert socket.broadcast()["id"] == "n1"
    functions = stack.client("lambda")
    swept = functions.invoke(FunctionName=stack.stack.functions["sweep"], Payload=b"{}")
    assert "FunctionError" not in swept, swept["Payload"].read()
    assert json.loads(swept["Payload"].read())["rings"] >= 0
    state = operator(stack).state

    def caught_up() -> bool:
        cursors = state.marks(poison).cursors
        return all(cursors.get(consumer, 0) == 1 for consumer in ("fan_out", "index", "archive"))

    eventually(caught_up, "the planted ledger was left behind")
    page = post(stack, "/v1/projects/x/sync", {"since_committed_id": 0}, projects=["x", POISON])
    assert page.status_code == 200, "a token that names it still reads"


def test_nothing_new_may_have_such_a_name(stack: Hub) -> None:
    path = "/v1/realtime/events"
    sent = {"eventId": "e", "sessionId": POISON, "ts": "2026-02-16T10:00:00Z", "type": "call.connecting"}
    refused = post(stack, path, {**sent, "payload": {"callId": "c"}, "schemaVersion": "1.0"})
    assert refused.status_code == 400
    assert "/sessionId" in refused.text
    refused = post(stack, "/v1/projects/a%23b/submit_events", {"events": [item("e")]}, projects=["a#b"])
    assert (refused.status_code, refused.json()["details"]["field"]) == (400, "project")
