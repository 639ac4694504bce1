"""S12, S14, S15: the conversation on a socket, on the in-memory adapters."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryState, in_turn
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.canonical import digest
from millrace.ledger.domain.errors import AuthFailed, Throttled, Unavailable
from millrace.ledger.domain.names import Ledger, realtime_ledger, stream_ledger
from millrace.ledger.domain.page import Draft, Origin
from millrace.live.adapters.memory import MemoryConnections, MemoryHandovers, MemorySubscriptions, MemoryWire
from millrace.live.application.answer import Answers
from millrace.live.application.broadcast import Broadcast
from millrace.live.application.converse import MISSTEPS, Converse
from millrace.live.application.send_snapshot import SendSnapshot
from millrace.live.application.subscribe import Subscribe
from millrace.live.application.take_turn import TakeTurn
from millrace.live.domain import events as live_events
from millrace.live.domain.line import TURN_MS
from millrace.live.domain.messages import LIMITS
from millrace.live.ports import Turn
from millrace.sync.adapters.memory import MemoryIndex
from millrace.sync.application.submit import Submit
from millrace.sync.application.sync import Sync

DAY = 86_400_000


@dataclass
class Hub:
    now: int = 1_800_000_000_000
    claims: MemoryClaims = field(default_factory=MemoryClaims)
    log: MemoryLog = field(default_factory=MemoryLog)
    state: MemoryState = field(default_factory=MemoryState)
    index: MemoryIndex = field(default_factory=MemoryIndex)
    connections: MemoryConnections = field(default_factory=MemoryConnections)
    subscriptions: MemorySubscriptions = field(default_factory=MemorySubscriptions)
    wire: MemoryWire = field(default_factory=MemoryWire)
    numbers: Any = field(default_factory=itertools.count)

    def clock(self) -> int:
        return self.now

    def commit(self) -> Commit:
        heads = Heads(self.clock)
        nonce = lambda: b"%d" % next(self.numbers)  # noqa: E731 - one line says it
        return Commit(self.claims, self.log, self.state, heads, in_turn, self.clock, nonce, lambda attempt: None)

    def converse(self) -> Converse:
        submit = Submit(self.commit(), self.clock, lambda *_: "open")
        sync = Sync(self.log, self.state, self.index, Heads(self.clock), in_turn)
        subscribe = Subscribe(
            SendSnapshot(self.log, self.state, self.subscriptions, MemoryHandovers(), in_turn, self.clock),
            Heads(self.clock),
        )
        new_id = lambda: f"s{next(self.numbers)}"  # noqa: E731
        answers = Answers(self.verify, submit, sync, subscribe, self.subscriptions, self.wire, self.clock, new_id)
        take_turn = TakeTurn(self.connections, self.clock, self.nap)
        return Converse(self.connections, self.subscriptions, self.wire, answers, self.clock, take_turn)

    def nap(self, ms: int) -> None:
        self.now += ms

    def verify(self, token: str) -> Identity:
        """Tokens of this test are `client:partitions`."""
        client, _, partitions = token.partition(":")
        if not partitions:
            raise AuthFailed("bad token")
        roles = frozenset({"producer", "consumer"})
        names = tuple(partitions.split(","))
        return Identity(client, "t", frozenset({"demo"}), names, roles, "t", self.now + DAY)

    def open(self, connection: str, token: str = "me:*", **envelope: Any) -> None:
        self.connections.open(connection, self.now)
        client = token.partition(":")[0]
        self.say(connection, "connect", {"token": token, "client_id": client}, **envelope)
        assert self.heard(connection)["type"] == "connected"

    def say(self, connection: str, kind: Any, payload: Any, **envelope: Any) -> None:
        message = {"type": kind, "protocol_version": "1.0", "payload": payload, **envelope}
        self.converse()(connection, json.dumps(message))

    def heard(self, connection: str) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.wire.sent[connection].pop(0))
        return message

    def error(self, connection: str) -> str:
        message = self.heard(connection)
        assert message["type"] == "error"
        return str(message["payload"]["code"])

    def fan_out(self, ledger: Ledger) -> None:
        expired = lambda to: live_events.expired(to.dialect, to.project)  # noqa: E731
        render = live_events.Renderer()
        parts = (self.log, self.state, self.subscriptions, self.connections, self.wire)
        Broadcast(*parts, in_turn, self.clock, render, expired, lambda: True)(ledger)


SYNC_LEDGER = Ledger.of("sync", "t", "demo")


def item(id_: str, partition: str = "a") -> dict[str, Any]:
    return {"id": id_, "partitions": [partition], "event": {"type": "t", "payload": {"n": id_}}}


def test_connected_says_who_where_and_within_which_limits() -> None:
    hub = Hub()
    hub.connections.open("c1", hub.now)
    hub.say("c1", "connect", {"token": "me:*", "client_id": "me"}, msg_id="m1")
    answer = hub.heard("c1")
    assert (answer["type"], answer["protocol_version"], answer["msg_id"]) == ("connected", "1.0", "m1")
    payload = answer["payload"]
    assert (payload["client_id"], payload["server_last_committed_id"]) == ("me", 0)
    assert payload["limits"] == LIMITS
    assert payload["server_time"] == hub.now


@pytest.mark.parametrize(
    ("text", "code", "closed"),
    [
        ("garbage", "bad_request", False),
        ("\x00\x01\x02", "bad_request", False),
        ("[]", "bad_request", False),
        ('{"type": 5, "protocol_version": "1.0", "payload": {}}', "bad_request", False),
        ('{"type": "sync", "protocol_version": "1.0", "payload": {"since_committed_id": 0}}', "bad_request", False),
        ('{"type": "connect", "protocol_version": "1.0", "payload": []}', "bad_request", False),
        ('{"type": "connect", "payload": {}}', "bad_request", False),
        ('{"type": "connect", "protocol_version": "2.0", "payload": {}}', "protocol_version_unsupported", True),
        ('{"type": "connect", "protocol_version": "1.0", "payload": {}}', "auth_failed", True),
        ('{"type": "connect", "protocol_version": "1.0", "payload": {"token": "x"}}', "auth_failed", True),
        (
            '{"type": "connect", "protocol_version": "1.0", "payload": {"token": "me:*", "client_id": "you"}}',
            "auth_failed",
            True,
        ),
        (
            '{"type": "x", "protocol_version": "1.0", "payload": {}, "msg_id": ' + "1" * 130_000 + "}",
            "bad_request",
            False,
        ),
    ],
)
def test_s15_what_is_wrong_before_connect_gets_the_contracts_answer(text: str, code: str, closed: bool) -> None:
    hub = Hub()
    hub.connections.open("c1", hub.now)
    hub.converse()("c1", text)
    assert hub.error("c1") == code
    assert ("c1" in hub.wire.closed) == closed


def test_a_socket_that_only_errs_is_closed_before_it_says_who_it_is() -> None:
    hub = Hub()
    hub.connections.open("c1", hub.now)
    for number in range(1, MISSTEPS + 1):
        assert "c1" not in hub.wire.closed
        hub.converse()("c1", "garbage")
        assert hub.error("c1") == "bad_request", number
    assert "c1" in hub.wire.closed


def test_errors_of_one_who_is_known_close_nothing() -> None:
    hub = Hub()
    hub.connections.open("c1", hub.now)
    for _ in range(MISSTEPS - 1):
        hub.converse()("c1", "garbage")
        hub.error("c1")
    hub.say("c1", "connect", {"token": "me:*", "client_id": "me"})
    assert hub.heard("c1")["type"] == "connected"
    for _ in range(2 * MISSTEPS):
        hub.converse()("c1", "garbage")
        assert hub.error("c1") == "bad_request"
    assert "c1" not in hub.wire.closed


def test_s12_an_oversize_message_is_told_its_size() -> None:
    hub = Hub()
    hub.open("c1")
    hub.converse()("c1", "x" * 1_000_000)
    details = hub.heard("c1")["payload"]["details"]
    assert (details["max_bytes"], details["actual_bytes"]) == (LIMITS["max_message_bytes"], 1_000_000)


def test_s12_too_many_messages_are_told_when_to_come_back() -> None:
    hub = Hub()
    hub.open("c1")
    for _ in range(LIMITS["messages_per_second"] - 1):
        hub.say("c1", "heartbeat", {})
        assert hub.heard("c1")["type"] == "heartbeat_ack"
    hub.say("c1", "heartbeat", {}, msg_id="late")
    answer = hub.heard("c1")
    assert (answer["payload"]["code"], answer["msg_id"]) == ("rate_limited", "late")
    assert answer["payload"]["details"]["retry_after_ms"] == 1000
    assert "c1" not in hub.wire.closed


def test_a_second_sync_while_one_runs_is_a_bad_request() -> None:
    hub = Hub()
    hub.open("c1")
    running = hub.connections.line_up("c1", "sync", hub.now)
    hub.say("c1", "sync", {"since_committed_id": 0})
    assert hub.error("c1") == "bad_request"
    assert running.connection
    hub.connections.end_turn(running, running.connection, hub.now)
    hub.say("c1", "sync", {"since_committed_id": 0})
    assert hub.heard("c1")["type"] == "sync_response"


@pytest.mark.parametrize("kind", ["sync", "submit_events"])
def test_s12_a_client_that_repeats_a_message_whose_function_died_is_not_refused_for_ever(kind: str) -> None:
    hub = Hub()
    hub.open("c1")
    hub.connections.line_up("c1", kind, hub.now)
    hub.now += TURN_MS
    hub.say("c1", kind, {"since_committed_id": 0, "events": [item("e1")]}, msg_id="again")
    answer = hub.heard("c1")
    assert (answer["payload"]["code"], answer["msg_id"]) == ("server_error", "again")
    assert "c1" in hub.wire.closed


@pytest.mark.parametrize(("kind", "least", "most"), [("submit_events", 10_000, 11_000), ("sync", 25_000, 26_000)])
def test_s12_a_message_that_dies_holds_its_connection_up_for_seconds_and_is_not_passed(
    kind: str, least: int, most: int
) -> None:
    """To answer what came after it would be out of order; the client connects again, and submits what is open."""
    hub = Hub()
    hub.open("c1")
    hub.connections.line_up("c1", kind, hub.now)
    began = hub.now
    hub.say("c1", "submit_events", {"events": [item("behind")]}, msg_id="m2")
    answer = hub.heard("c1")
    assert (answer["payload"]["code"], answer["msg_id"]) == ("server_error", "m2")
    assert least <= hub.now - began <= most
    assert "c1" in hub.wire.closed
    assert (hub.connections.rows, hub.claims.items) == ({}, {}), "nothing was submitted"


def test_s12_a_message_whose_connection_was_closed_while_it_waited_says_no_more() -> None:
    hub = Hub()
    hub.open("c1")
    hub.connections.line_up("c1", "submit_events", hub.now)
    hub.nap = lambda ms: hub.connections.remove("c1")  # type: ignore[method-assign]
    hub.say("c1", "heartbeat", {})
    assert hub.wire.sent["c1"] == []


def test_s12_a_message_in_line_looks_again_when_storage_does_not_answer() -> None:
    hub = Hub()
    hub.open("c1")
    before = hub.connections.line_up("c1", "heartbeat", hub.now)
    looks = iter([Unavailable("away"), Throttled("slow down")])

    class Flaky(MemoryConnections):
        def look(self, id_: str, turn: Turn) -> Turn:
            if (problem := next(looks, None)) is not None:
                raise problem
            assert before.connection
            self.end_turn(before, before.connection, hub.now)
            return MemoryConnections.look(self, id_, turn)

    hub.connections = Flaky(hub.connections.rows)
    hub.say("c1", "heartbeat", {})
    assert hub.heard("c1")["type"] == "heartbeat_ack"


def test_an_unknown_type_names_the_known_ones() -> None:
    hub = Hub()
    hub.open("c1")
    hub.say("c1", "sing", {})
    assert "submit_events" in hub.heard("c1")["payload"]["message"]


def test_s9_a_broadcast_goes_to_all_who_meet_it_but_the_origin_connection() -> None:
    hub = Hub()
    for connection, token in (("c1", "me:*"), ("c2", "me:*"), ("c3", "you:*"), ("c4", "you:*")):
        hub.open(connection, token)
        partition = "b" if connection == "c4" else "a"
        hub.say(connection, "sync", {"since_committed_id": 0, "partitions": [partition]})
        assert hub.heard(connection)["payload"]["has_more"] is False
    hub.say("c1", "submit_events", {"events": [item("e1"), item("e2")]})
    assert [r["committed_id"] for r in hub.heard("c1")["payload"]["results"]] == [1, 2]
    hub.fan_out(SYNC_LEDGER)
    assert hub.wire.sent["c1"] == []
    assert hub.wire.sent["c4"] == []
    for connection in ("c2", "c3"):
        got = [hub.heard(connection) for _ in range(2)]
        assert [(m["type"], m["payload"]["committed_id"]) for m in got] == [
            ("event_broadcast", 1),
            ("event_broadcast", 2),
        ]
        assert got[0]["payload"]["event"] == {"type": "t", "payload": {"n": "e1"}}


def test_s6_the_watermark_of_a_cycle_is_kept_by_the_connection() -> None:
    hub = Hub()
    hub.open("c1")
    for start in (0, 100):
        hub.say("c1", "submit_events", {"events": [item(f"e{n}") for n in range(start, start + 100)]})
        hub.heard("c1")
    hub.say("c1", "sync", {"since_committed_id": 0, "limit": 60})
    page = hub.heard("c1")["payload"]
    assert (page["sync_to_committed_id"], page["next_since_committed_id"], page["has_more"]) == (200, 60, True)
    hub.say("c1", "submit_events", {"events": [item("late")]})
    hub.heard("c1")
    seen = 60
    while page["has_more"]:
        hub.say("c1", "sync", {"since_committed_id": page["next_since_committed_id"], "limit": 60})
        page = hub.heard("c1")["payload"]
        seen += len(page["events"])
        assert page["sync_to_committed_id"] == 200
    assert (seen, page["next_since_committed_id"]) == (200, 200)


def test_subscription_partitions_may_differ_from_the_synced_ones() -> None:
    hub = Hub()
    hub.open("c1")
    hub.say("c1", "sync", {"since_committed_id": 0, "partitions": ["a"], "subscription_partitions": ["b"]})
    hub.heard("c1")
    hub.open("c2")
    hub.say("c2", "submit_events", {"events": [item("e1", "a"), item("e2", "b")]})
    hub.fan_out(SYNC_LEDGER)
    assert hub.heard("c1")["payload"]["id"] == "e2"


def test_s7_an_unauthorised_partition_forbids_the_sync_and_subscribes_to_nothing() -> None:
    hub = Hub()
    hub.open("c1", "me:a")
    for payload in ({"partitions": ["a", "b"]}, {"partitions": ["a"], "subscription_partitions": ["b"]}, {}):
        hub.say("c1", "sync", {"since_committed_id": 0, **payload})
        assert hub.error("c1") == "forbidden"
    assert hub.subscriptions.rows == {}


def test_a_token_that_expires_closes_the_connection_at_its_next_message_or_event() -> None:
    hub = Hub()
    for connection in ("c1", "c2"):
        hub.open(connection, "me:*")
        hub.say(connection, "sync", {"since_committed_id": 0})
        hub.heard(connection)
    hub.now += DAY
    hub.say("c1", "heartbeat", {})
    assert hub.error("c1") == "auth_failed"
    hub.open("c3", "you:*")
    hub.say("c3", "submit_events", {"events": [item("e1")]})
    hub.fan_out(SYNC_LEDGER)
    assert hub.error("c2") == "auth_failed"
    assert {"c1", "c2"} <= hub.wire.closed
    assert hub.subscriptions.rows == {}


def test_disconnect_closes_and_forgets() -> None:
    hub = Hub()
    hub.open("c1")
    hub.say("c1", "sync", {"since_committed_id": 0})
    hub.say("c1", "disconnect", {})
    assert "c1" in hub.wire.closed
    assert (hub.subscriptions.rows, hub.connections.rows) == ({}, {})


def test_a_message_on_a_forgotten_connection_is_told_to_connect_again() -> None:
    hub = Hub()
    hub.say("ghost", "heartbeat", {})
    assert hub.error("ghost") == "auth_failed"
    assert "ghost" in hub.wire.closed


def test_pages_are_cut_so_that_every_message_fits() -> None:
    hub = Hub()
    hub.open("c1")
    for start in range(0, 900, 100):
        hub.say("c1", "submit_events", {"events": [item(f"event-number-{n}") for n in range(start, start + 100)]})
        hub.heard("c1")
    for dialect, envelope in (("c2", {}), ("c3", {"protocolVersion": "1.0"})):
        hub.connections.open(dialect, hub.now)
        hub.converse()(
            dialect,
            json.dumps(
                {
                    "type": "connect",
                    "protocol_version": "1.0",
                    **envelope,
                    "payload": {"token": "me:*", "client_id": "me", "clientId": "me"},
                }
            ),
        )
        hub.heard(dialect)
        ask = {"since_committed_id": 0, "sinceCommittedId": 0, "limit": 1000}
        hub.converse()(dialect, json.dumps({"type": "sync", "protocol_version": "1.0", **envelope, "payload": ask}))
        assert len(hub.wire.sent[dialect][0].encode()) <= LIMITS["max_message_bytes"]
        assert hub.heard(dialect)["type"] == "sync_response"


def commit_to(hub: Hub, ledger: Ledger, *ids: str) -> None:
    for id_ in ids:
        body = json.dumps({"eventId": id_}).encode()
        hub.commit()(ledger, [Draft(id_, digest(body), body)], Origin("c"))


def test_s14_a_session_is_tailed_from_a_sequence_on() -> None:
    hub = Hub()
    ledger = realtime_ledger("t", "call-1")
    commit_to(hub, ledger, "a", "b", "c")
    hub.open("c1", "me:session:call-1")
    hub.say("c1", "subscribe", {"kind": "session", "session_id": "call-1", "after_sequence": 1}, msg_id="m")
    opened = hub.heard("c1")
    assert (opened["type"], opened["msg_id"]) == ("subscribed", "m")
    commit_to(hub, ledger, "d")
    hub.fan_out(ledger)
    got = [hub.heard("c1")["payload"] for _ in range(3)]
    assert [(p["phase"], p["event"]["eventId"], p["event"]["sequence"]) for p in got] == [
        ("snapshot", "b", 2),
        ("snapshot", "c", 3),
        ("live", "d", 4),
    ]
    assert {p["subscription_id"] for p in got} == {opened["payload"]["subscription_id"]}
    hub.say("c1", "unsubscribe", {"subscription_id": opened["payload"]["subscription_id"]})
    commit_to(hub, ledger, "e")
    hub.fan_out(ledger)
    assert hub.wire.sent["c1"] == []


@pytest.mark.parametrize(
    ("start", "phases"), [("tail", ["live"]), ("snapshot", ["snapshot", "live"]), ("head", ["snapshot", "live"])]
)
def test_s14_a_stream_is_opened_with_its_watermark(start: str, phases: list[str]) -> None:
    hub = Hub()
    ledger = stream_ledger("t", "r1", "main")
    commit_to(hub, ledger, "a")
    hub.open("c1", "me:runtime:*")
    hub.say("c1", "subscribe", {"kind": "stream", "runtime_id": "r1", "stream_id": "main", "start": start})
    assert hub.heard("c1")["payload"]["snapshot_high_watermark_seq_no"] == 1
    commit_to(hub, ledger, "b")
    hub.fan_out(ledger)
    assert [hub.heard("c1")["payload"]["phase"] for _ in phases] == phases


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({}, "bad_request"),
        ({"kind": "planet"}, "bad_request"),
        ({"kind": "session"}, "bad_request"),
        ({"kind": "session", "session_id": "s", "after_sequence": -1}, "bad_request"),
        ({"kind": "session", "session_id": "s", "after_sequence": True}, "bad_request"),
        ({"kind": "session", "session_id": "other"}, "forbidden"),
        ({"kind": "stream", "runtime_id": "r1"}, "bad_request"),
        ({"kind": "stream", "runtime_id": "r1", "stream_id": "x", "start": "middle"}, "bad_request"),
        ({"kind": "stream", "runtime_id": "r2", "stream_id": "x"}, "forbidden"),
    ],
)
def test_a_bad_subscribe_is_answered_and_leaves_nothing(payload: dict[str, Any], code: str) -> None:
    hub = Hub()
    hub.open("c1", "me:session:s,runtime:r1")
    hub.say("c1", "subscribe", payload)
    assert hub.error("c1") == code
    assert hub.subscriptions.rows == {}


def test_s16_a_project_client_stops_at_its_first_rejection() -> None:
    hub = Hub()
    hub.connections.open("c1", hub.now)
    connect = {"token": "me:*", "clientId": "me", "projectId": "demo"}
    hub.converse()("c1", json.dumps({"type": "connect", "protocolVersion": "1.0", "payload": connect}))
    assert hub.heard("c1")["payload"]["projectLastCommittedId"] == 0

    def flat(id_: str, kind: Any) -> dict[str, Any]:
        meta = {"clientId": "me", "clientTs": 5}
        return {
            "id": id_,
            "partition": "a",
            "projectId": "demo",
            "type": kind,
            "schemaVersion": 1,
            "payload": {},
            "meta": meta,
        }

    events = [flat("e1", "t"), flat("e2", ""), flat("e3", "t")]
    hub.converse()("c1", json.dumps({"type": "submit_events", "protocolVersion": "1.0", "payload": {"events": events}}))
    results = hub.heard("c1")["payload"]["results"]
    assert [(r["id"], r["status"]) for r in results] == [
        ("e1", "committed"),
        ("e2", "rejected"),
        ("e3", "not_processed"),
    ]
    assert (results[2]["reason"], results[2]["blockedById"]) == ("prior_item_failed", "e2")
    assert list(hub.log.pages[SYNC_LEDGER.name]) == [1]


def test_s11_a_watermark_from_another_connection_does_not_open_a_hole() -> None:
    hub = Hub()
    hub.open("c1")
    hub.say("c1", "submit_events", {"events": [item(f"e{n}") for n in range(10)]})
    hub.fan_out(SYNC_LEDGER)
    hub.open("c2")
    hub.say("c2", "sync", {"since_committed_id": 2, "sync_to_committed_id": 5})
    page = hub.heard("c2")["payload"]
    assert ([e["committed_id"] for e in page["events"]], page["sync_to_committed_id"]) == (list(range(3, 11)), 10)


def test_s14_optional_members_that_are_null_count_as_left_out() -> None:
    hub = Hub()
    commit_to(hub, realtime_ledger("t", "call-1"), "a")
    commit_to(hub, stream_ledger("t", "r1", "main"), "b")
    hub.open("c1", "me:*")
    tail = {"kind": "session", "session_id": "call-1", "after_sequence": None}
    stream = {"kind": "stream", "runtime_id": "r1", "stream_id": "main", "start": None, "cursor": None}
    for payload in (tail, stream):
        hub.say("c1", "subscribe", payload, msg_id=None)
        opened = hub.heard("c1")
        assert (opened["type"], "msg_id" in opened) == ("subscribed", False)
        assert hub.heard("c1")["payload"]["phase"] == "snapshot"
    hub.say("c1", "sync", {"since_committed_id": 0, "partitions": None, "limit": None, "sync_to_committed_id": None})
    assert hub.heard("c1")["type"] == "sync_response"


def test_t1_a_subscription_gets_no_null_that_an_earlier_release_stored() -> None:
    hub = Hub()
    body = b'{"event_id":"e","extensions":null,"payload":{"extensions":null}}'
    hub.commit()(stream_ledger("t", "r1", "main"), [Draft("e", digest(body), body)], Origin("c"))
    hub.open("c1", "me:runtime:*")
    hub.say("c1", "subscribe", {"kind": "stream", "runtime_id": "r1", "stream_id": "main"})
    hub.heard("c1")
    assert hub.heard("c1")["payload"]["event"] == {"event_id": "e", "payload": {"extensions": None}, "seq_no": 1}


@pytest.mark.parametrize("start", [[], {}, 5])
def test_an_odd_start_is_a_bad_request(start: Any) -> None:
    hub = Hub()
    hub.open("c1", "me:runtime:r1")
    hub.say("c1", "subscribe", {"kind": "stream", "runtime_id": "r1", "stream_id": "x", "start": start})
    assert hub.error("c1") == "bad_request"


def test_a_fan_out_moves_its_cursor_slice_by_slice() -> None:
    hub = Hub()
    hub.open("c1")
    hub.say("c1", "sync", {"since_committed_id": 0})
    for n in range(130):
        hub.commit()(SYNC_LEDGER, [Draft(f"e{n}", digest(b"%d" % n), b'{"event":{}}', ("a",))], Origin("x"))
    stops = iter([True, False])
    render, parts = live_events.Renderer(), (hub.log, hub.state, hub.subscriptions, hub.connections, hub.wire)
    done = Broadcast(*parts, in_turn, hub.clock, render, lambda to: "", lambda: next(stops))(SYNC_LEDGER)
    assert (done, hub.state.marks(SYNC_LEDGER).cursors["fan_out"]) == (False, 100)
    hub.fan_out(SYNC_LEDGER)
    assert hub.state.marks(SYNC_LEDGER).cursors["fan_out"] == 130
    hub.heard("c1")
    assert [hub.heard("c1")["payload"]["committed_id"] for _ in range(130)] == list(range(1, 131))


CALL = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CAMEL = {"protocolVersion": "1.0"}


def test_a_broadcast_says_which_call_its_event_came_in() -> None:
    """Beside the payload, in every dialect; a repeated submit belongs to another call and is the same event."""
    hub = Hub()
    hub.open("writer")
    hub.open("reader", "you:*")
    hub.connections.open("camel", hub.now)
    hub.say("camel", "connect", {"token": "they:*", "clientId": "they"}, **CAMEL)
    hub.heard("camel")
    hub.say("reader", "sync", {"partitions": ["a"], "since_committed_id": 0})
    hub.say("camel", "sync", {"partitions": ["a"], "sinceCommittedId": 0}, **CAMEL)
    for connection in ("reader", "camel"):
        assert hub.heard(connection)["type"] == "sync_response"
    hub.say("writer", "submit_events", {"events": [item("e1")]}, traceparent=CALL)
    hub.say("writer", "submit_events", {"events": [item("e1")]}, traceparent=CALL.replace("4bf9", "ffff"))
    hub.say("writer", "submit_events", {"events": [item("e2")]}, traceparent={"not": "one"})
    committed = [hub.heard("writer")["payload"]["results"][0]["committed_id"] for _ in range(3)]
    assert committed == [1, 1, 2]
    hub.fan_out(SYNC_LEDGER)
    for connection in ("reader", "camel"):
        first, second = hub.heard(connection), hub.heard(connection)
        assert (first["type"], first["traceparent"]) == ("event_broadcast", CALL)
        assert "traceparent" not in json.dumps(first["payload"])
        assert "traceparent" not in second
