"""One stored row that nobody can read hides no other: planted in every list that a shared worker reads.

The row is torn where it is stored, below the handlers. Whoever reads the list serves the neighbours, and tells.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from millrace.delivery import wiring as delivery_wiring
from millrace.delivery.application.held_by_targets import HeldByTargets
from millrace.delivery.domain.drains import EXPECTED_MS
from millrace.delivery.domain.targets import Target
from millrace.ledger import wiring as core
from millrace.ledger.adapters.dynamodb.room import DynamoRoom, _row
from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.application.failures import Failures
from millrace.ledger.domain.errors import UnreadableRow
from millrace.ledger.domain.names import Ledger, stream_ledger
from millrace.ledger.domain.page import Draft, Origin, Page, Record
from millrace.ledger.domain.waiting import Waiting
from millrace.live import wiring as live_wiring
from millrace.live.adapters.memory import MemoryWire
from millrace.live.domain.shards import key_of
from millrace.live.ports import Subscription
from millrace.runtime import bearer
from millrace.runtime.settings import setting
from millrace.streams import wiring as streams_wiring
from millrace.streams.application.markers import marker_group
from millrace.streams.ports import Announcement, Intent, VersionedRow
from tests.unit.runtime.test_handlers import answer, aws, changed, invoke, sample
from tests.unit.runtime.test_handlers_delivery import OPERATOR, message, operator, stream_of, woken
from tests.unit.runtime.test_poison import committed, grown

__all__ = ["aws", "operator"]

JOURNAL = "delivery#default#default"
FIRST, TORN, LAST = "first", "torn", "zlast"


def tear(table: str, p: str, s: str, **attributes: Any) -> None:
    """Put these in place of the row's own; None takes one away."""
    client = core.dynamodb()
    key = {"p": {"S": p}, "s": {"S": s}}
    item: dict[str, Any] = dict(client.get_item(TableName=setting(table), Key=key).get("Item", key))
    for name, value in attributes.items():
        item.pop(name, None)
        if value is not None:
            item[name] = value
    client.put_item(TableName=setting(table), Item=item)


def targets_with_one_torn(sort: str = "def#", **attributes: Any) -> None:
    for name in (FIRST, TORN, LAST):
        answer("targets", changed(sample("target_put"), pathParameters={"target_id": name}))
    answer("ingest", sample("ingest"))
    woken()
    tear("DELIVERY_TABLE", "targets#default", sort + TORN, **(attributes or {"d": {"S": "{torn"}}))


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """What was told since the last look."""
    found = [vars(record) for record in caplog.records if record.msg == "unreadable_row"]
    caplog.clear()
    return [(line["what"], line["key"]) for line in found]


def woken_targets() -> set[str]:
    return {wake["target_id"] for wake in woken()}


TORN_TARGETS = [
    pytest.param("def#", {"d": {"S": "{torn"}}, id="the target"),
    pytest.param("def#", {"d": None}, id="nothing of the target"),
    pytest.param("def#", {"k": {"S": "no bytes"}}, id="its secrets"),
    pytest.param("state#", {"c": {"S": "[]"}}, id="how it fares"),
    pytest.param("state#", {"bm": {"S": "late"}}, id="when it was blocked"),
]


@pytest.mark.parametrize(("sort", "attributes"), TORN_TARGETS)
def test_an_unreadable_target_hides_none_of_its_tenant_from_wake_ups_reminders_and_sweeps(
    caplog: pytest.LogCaptureFixture, sort: str, attributes: dict[str, Any]
) -> None:
    targets_with_one_torn(sort, **attributes)
    caplog.clear()
    invoke("fan_out", stream_of(JOURNAL))
    assert woken_targets() == {FIRST, LAST}
    assert ("target", TORN) in told(caplog)
    for name in (FIRST, LAST):
        delivery_wiring.agenda().note(Target(f"default#{name}", "stub"), [JOURNAL])
    invoke("remind", sample("remind"))
    assert woken_targets() == {FIRST, LAST}
    assert ("target", TORN) in told(caplog)
    sweep = replace(delivery_wiring.sweep_targets(), late_ms=0)
    sweep = replace(sweep, expect=replace(sweep.expect, clock=lambda: core.now_ms() + EXPECTED_MS))
    failures = Failures()
    assert sweep(failures)(list(core.state().ledgers())) == 2
    assert failures.found == []


def test_an_unreadable_target_is_shown_in_status_and_can_be_deleted_and_put_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    targets_with_one_torn()
    status = answer("targets", sample("delivery_status"))
    assert status["unreadable_targets"] == [TORN]
    assert status["ok"] is False
    assert [one["target_id"] for one in status["delivery_targets"]] == [FIRST, LAST]
    listed = answer("targets", changed(sample("target_list"), pathParameters={}))
    assert [one["target_id"] for one in listed["targets"]] == [FIRST, LAST]
    of_torn = {"pathParameters": {"target_id": TORN}}
    assert answer("targets", changed(sample("target_get"), **of_torn), 409)["code"] == "conflict"
    assert answer("targets", changed(sample("target_put"), **of_torn), 409)["code"] == "conflict"
    assert answer("targets", changed(sample("target_delete"), **of_torn), 403)["code"] == "forbidden"
    of_everything = replace(OPERATOR, projects=frozenset({"*"}))
    monkeypatch.setattr(bearer.tokens, "verify", lambda _self, _token: of_everything)
    assert answer("targets", changed(sample("target_delete"), **of_torn)) == {"deleted": True}
    answer("targets", changed(sample("target_put"), **of_torn))
    assert answer("targets", sample("delivery_status"))["unreadable_targets"] == []


def test_an_unreadable_target_lets_nothing_be_pruned() -> None:
    """C8: nobody knows what it needs."""
    targets_with_one_torn()
    for name in (FIRST, LAST):
        delivery_wiring.positions().begin_at(Target(f"default#{name}", "stub"), JOURNAL, 1)
    held = HeldByTargets(delivery_wiring.directory(), delivery_wiring.positions())
    assert held(JOURNAL) == 0
    delivery_wiring.directory().remove("default", TORN)
    assert held(JOURNAL) == 1


def test_a_target_whose_lease_is_unreadable_is_served_and_so_are_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    targets_with_one_torn("state#", b=None)
    far = {"N": str(10**15)}
    for torn in (
        {"u": far, "f": {"S": "once"}},
        {"u": None},
        {"u": far, "h": {"N": "7"}},
        {"u": {"N": "1"}, "l": None},
    ):
        whole = {"f": {"N": "1"}, "h": {"S": "h"}, "l": {"BOOL": False}}
        tear("DELIVERY_TABLE", "drains#default", TORN, **{**whole, **torn})
        for name in (LAST, TORN):
            wake = {"tenant": "default", "target_id": name, "ledgers": [JOURNAL], "scan": False, "slow": True}
            assert invoke("deliver", message(wake)) is None
        assert ("lease", TORN) in told(caplog)
        assert delivered(LAST) == delivered(TORN) == 1
        assert delivery_wiring.drains().of("default") == []


def delivered(name: str) -> int:
    return len(answer("targets", changed(sample("deliveries"), pathParameters={"target_id": name}))["deliveries"])


def test_an_unreadable_place_in_line_keeps_nobody_from_their_turn(caplog: pytest.LogCaptureFixture) -> None:
    targets_with_one_torn("state#", b=None)
    tear("DELIVERY_TABLE", "line#default", TORN, f={"S": "early"})
    wake = {"tenant": "default", "target_id": LAST, "ledgers": [JOURNAL], "scan": False, "slow": True}
    assert invoke("deliver", message(wake)) is None
    assert ("place in line", TORN) in told(caplog)
    assert delivered(LAST) == 1


@pytest.mark.parametrize("kind", ["cursor", "deliveries", "event"])
def test_a_ledger_whose_deliveries_are_unreadable_keeps_no_other_ledger_of_the_target_waiting(
    caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """D6"""
    targets_with_one_torn("state#", b=None)
    other = "sync#default#demo"
    sources = [{"contract": "delivery", "scope": "default"}, {"contract": "sync", "scope": "demo"}]
    both = {"type": "stub", "sources": sources}
    answer("targets", changed(sample("target_put"), both, pathParameters={"target_id": "both"}))
    answer("submit", sample("submit"))
    wake = {"tenant": "default", "target_id": "both", "ledgers": [JOURNAL, other], "scan": False, "slow": True}
    if kind == "cursor":
        tear("DELIVERY_TABLE", "cursors#default#both", JOURNAL, v={"S": "far"})
    elif kind == "deliveries":
        tear("DELIVERY_TABLE", "rows#default#both", f"{JOURNAL}%#{1:020d}", d={"S": "[torn"})
    else:
        torn = Page(2, (Record("torn", b"", b"torn"),), 0, Origin("C1"), b"nonce")
        assert core.log().append(Ledger(JOURNAL, JOURNAL), torn) is None
    assert invoke("deliver", message(wake)) is None
    assert kind in {what for what, _ in told(caplog)}
    position = delivery_wiring.positions().of(Target("default#both", "stub"), [other])[other]
    assert position.at == 1


def test_an_unreadable_row_of_the_registry_hides_no_ledger_from_the_sweep() -> None:
    names = [Ledger.of("sync", "default", f"p{number}") for number in range(40)]
    grown(*names)
    for shard in range(16):
        tear("STATE_TABLE", f"ledgers#{shard}", "sync#default#p0", d=None)
        tear("STATE_TABLE", f"ledgers#{shard}", "sync#default#p1", d={"N": "7"})
    assert {ledger.name for ledger in core.state().ledgers()} == {ledger.name for ledger in names}
    assert invoke("sweep", sample("sweep"))["rings"] > 0


def test_a_connection_with_an_unreadable_subscription_is_closed_and_every_other_hears(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S9: it gets a contiguous prefix or is closed; it is told of nothing that it would miss."""
    wire = MemoryWire()
    monkeypatch.setattr(live_wiring, "wire", lambda: wire)
    ledger = Ledger.of("sync", "default", "demo")
    for connection in ("c1", "c2", "c3"):
        live_wiring.connections().open(connection, core.now_ms())
        one = Subscription(connection, "sync", ledger.name, ("p",), "snake", "demo", 10**15, 0)
        live_wiring.subscriptions().add(one)
    tear("CONNECTIONS_TABLE", f"l#{ledger.name}#p", key_of("c2", "sync"), d={"S": "{torn"})
    answer("submit", changed(sample("submit"), {"events": [item("e1")]}))
    invoke("fan_out", stream_of(ledger.name))
    assert {connection for connection, sent in wire.sent.items() if sent} == {"c1", "c3"}
    assert wire.closed == {"c2"}
    assert ("subscription", key_of("c2", "sync")) in told(caplog)
    answer("submit", changed(sample("submit"), {"events": [item("e2")]}))
    invoke("fan_out", stream_of(ledger.name))
    assert [len(wire.sent[connection]) for connection in ("c1", "c3")] == [2, 2]
    assert told(caplog) == [], "its rows went with it"


def item(id_: str) -> dict[str, Any]:
    return {"id": id_, "partitions": ["p"], "event": {"type": "t", "payload": 1}}


def test_a_connection_whose_own_list_is_unreadable_can_be_forgotten() -> None:
    subscriptions = live_wiring.subscriptions()
    one = Subscription("c1", "sync", "sync#default#demo", ("p",), "snake", "demo", 10**15, 0)
    subscriptions.add(one)
    tear("CONNECTIONS_TABLE", "c#c1", "sub#sync", k={"S": "[torn"})
    subscriptions.remove("c1")
    subscriptions.add(one)
    assert subscriptions.find(Ledger.to_read("sync#default#demo"), ["p"]) == [one]


def test_a_connection_that_is_unreadable_is_closed_by_its_next_message_or_its_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire = MemoryWire()
    monkeypatch.setattr(live_wiring, "wire", lambda: wire)
    event = sample("socket_message")
    connection = event["requestContext"]["connectionId"]
    live_wiring.connections().open(connection, core.now_ms())
    tear("CONNECTIONS_TABLE", f"c#{connection}", "connection", c={"S": "{torn"})
    assert live_wiring.connections().is_stranger(connection, core.now_ms() + 60_000)
    assert invoke("socket", event) == {"statusCode": 200}
    assert json.loads(wire.sent[connection][0])["payload"]["code"] == "server_error"
    assert wire.closed == {connection}


def test_settle_passes_over_an_intent_that_it_cannot_read(caplog: pytest.LogCaptureFixture) -> None:
    """M5"""
    ledger, group = stream_ledger("default", "rt-1", "markers"), marker_group("default", "rt-1")
    for key in ("a", "z"):
        pending = Announcement(ledger, Draft(f"marker-{key}-1", b"x" * 17, b"{}"), "C1")
        streams_wiring.rows().put(group, key, VersionedRow(1, {"record": {}, "deleted": False}, key, pending))
        streams_wiring.rows().leave(Intent(group, key, key), 0)
    for shard in range(8):
        tear("STATE_TABLE", f"intents#{shard}", "0torn", t={"S": "once"})
        tear("STATE_TABLE", f"intents#{shard}", "0too#many#parts#here", t={"N": "0"})
    assert invoke("settle", sample("settle")) == {"settled": 2}
    assert committed(ledger) == {"marker-a-1", "marker-z-1"}
    assert {("intent", "0torn"), ("intent", "0too#many#parts#here")} <= set(told(caplog))


def test_a_request_that_is_unreadable_in_the_waiting_room_holds_up_nobody_in_it() -> None:
    ledger, heard = Ledger.of("sync", "t", "p"), list[UnreadableRow]()
    waiting = Waiting(b"nonce", (Draft("e", b"x" * 17, b"{}"),), 0, Origin("C"), False, 1, 2)
    good = _row(ledger, waiting)

    class Client:
        def execute_statement(self, **_: Any) -> Any:
            return {"Items": [{**good, "e": {"B": b"torn"}}, good, {**good, "m": {"S": "x"}}]}

    client: Any = Client()
    assert DynamoRoom(client, "t", in_turn, heard.append).look(ledger) == [waiting]
    assert len(heard) == 2
