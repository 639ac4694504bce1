"""Every shared worker killed before and after each of its calls: whoever comes next does what is left.

This is what the table "When a worker dies" of docs/guarantees.md rests on; `deliver` has its own test
(tests/contract/delivery/test_drain_deaths.py). Time is virtual. The calls are those to everything that outlives a
process: tables, queues, sockets, objects.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from millrace.delivery.adapters.memory.drains import MemoryDrains
from millrace.delivery.adapters.memory.targets import MemoryAgenda, MemoryDirectory, MemoryPositions, MemoryWakes
from millrace.delivery.application.expect_drain import ExpectDrain
from millrace.delivery.application.lag import Lag, SweepTargets
from millrace.delivery.application.wake_targets import RemindTargets, WakeTargets
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.domain.sources import Source
from millrace.ledger.adapters.memory import MemoryClaims, MemoryDoorbell, MemoryLog, MemoryState, in_turn
from millrace.ledger.adapters.memory_rounds import MemoryRounds
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.failures import Failures
from millrace.ledger.application.heads import Heads
from millrace.ledger.application.sweep import Sweep, Watch
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.canonical import digest
from millrace.ledger.domain.names import Ledger, stream_ledger
from millrace.ledger.domain.page import Draft, Origin
from millrace.live.adapters.memory import (
    MemoryConnections,
    MemoryHandovers,
    MemoryPlaces,
    MemorySubscriptions,
    MemoryWire,
)
from millrace.live.application.answer import Answers
from millrace.live.application.broadcast import Broadcast
from millrace.live.application.close_strangers import CloseStrangers
from millrace.live.application.converse import Converse
from millrace.live.application.fan_out import FanOut
from millrace.live.application.send_snapshot import SENDER_MS, SendSnapshot
from millrace.live.application.subscribe import Subscribe
from millrace.live.application.take_place import TakePlace
from millrace.live.application.take_turn import TakeTurn
from millrace.live.domain import events as live_events
from millrace.live.domain.line import TURN_MS
from millrace.live.domain.messages import CONNECT_SECONDS
from millrace.live.ports import Subscription
from millrace.streams.adapters.memory import MemoryRows
from millrace.streams.application.announce import Announce
from millrace.streams.application.markers import SettleMarkers, marker_group
from millrace.streams.ports import Announcement, Intent, VersionedRow
from millrace.sync.adapters.memory import MemoryIndex
from millrace.sync.application.index_partitions import IndexPartitions
from millrace.sync.application.submit import Submit
from millrace.sync.application.sync import Sync
from tests.support.translated import of_type, template
from tests.unit.lake.archiving import Died, Fate, Mortal
from tests.unit.lake.archiving import Hub as ArchiveHub
from tests.unit.lake.archiving import prove as prove_archive

PROJECTS = [Ledger.of("sync", "t", name) for name in ("a", "b")]
EVENTS = 5
MINUTE_MS = 60_000


@dataclass
class Hub:
    """What outlives a process. Use cases are made for one process, whose fate decides over each call."""

    now: int = 1_800_000_000_000
    claims: MemoryClaims = field(default_factory=MemoryClaims)
    log: MemoryLog = field(default_factory=MemoryLog)
    state: MemoryState = field(default_factory=MemoryState)
    index: MemoryIndex = field(default_factory=MemoryIndex)
    connections: MemoryConnections = field(default_factory=MemoryConnections)
    subscriptions: MemorySubscriptions = field(default_factory=MemorySubscriptions)
    wire: MemoryWire = field(default_factory=MemoryWire)
    index_bell: MemoryDoorbell = field(default_factory=MemoryDoorbell)
    rest_bell: MemoryDoorbell = field(default_factory=MemoryDoorbell)
    directory: MemoryDirectory = field(default_factory=MemoryDirectory)
    drains: MemoryDrains = field(default_factory=MemoryDrains)
    agenda: MemoryAgenda = field(default_factory=MemoryAgenda)
    wakes: MemoryWakes = field(default_factory=MemoryWakes)
    rows: MemoryRows = field(default_factory=MemoryRows)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    rounds: MemoryRounds = field(init=False)

    def __post_init__(self) -> None:
        self.rounds = MemoryRounds(self.state)

    def clock(self) -> int:
        return self.now

    def commit(self, fate: Fate | None = None) -> Commit:
        fate = fate or Fate()
        claims, log, state = (Mortal(part, fate) for part in (self.claims, self.log, self.state))
        nonce = lambda: str(next(self.numbers)).encode()  # noqa: E731 - one line says it
        return Commit(claims, log, state, Heads(self.clock), in_turn, self.clock, nonce, lambda _: None)

    def grow(self, ledger: Ledger, events: int = EVENTS) -> None:
        for number in range(events):
            body = json.dumps({"event": {"type": "t", "payload": number}}).encode()
            self.commit()(ledger, [Draft(f"e{number}", digest(body), body, ("p",))], Origin("C"))

    def add_target(self, name: str) -> None:
        source = (Source("sync", "*"),)
        assert self.directory.put(HubTarget("t", name, "stub", "", False, source, frozenset(), False, False, 0), None)

    def committed(self, ledger: Ledger) -> list[str]:
        return [record.id for page in self.log.read(ledger, 0).pages for record in page.records]

    def cursor(self, ledger: Ledger, consumer: str) -> int:
        return self.state.marks(ledger).cursors.get(consumer, 0)

    def remind(self, fate: Fate | None = None) -> int:
        shared = (self.directory, self.agenda, self.drains, self.wakes)
        directory, agenda, drains, wakes = (Mortal(part, fate or Fate()) for part in shared)
        return RemindTargets(directory, agenda, drains, wakes, self.clock, lambda: True)(Failures())

    def woken(self) -> set[str]:
        return {wake.target_id for wake in self.wakes.sent}


def deaths(made: Callable[[], Hub], work: Callable[[Hub, Fate], object]) -> Iterator[tuple[str, Hub]]:
    """A hub for each way to die at a call of this work: it is what the dead process left."""
    for at in itertools.count():
        for after in (False, True):
            hub, fate = made(), Fate(at, after)
            try:
                work(hub, fate)
            except Died:
                yield f"{'after' if after else 'before'} call {at}", hub
                continue
            assert at > 2, "or nothing was killed"
            return


# fan_out


def listened_to() -> Hub:
    hub = Hub()
    for ledger in PROJECTS:
        hub.grow(ledger)
        for connection in ("c1", "c2"):
            hub.connections.open(connection, hub.now)
            hub.subscriptions.add(subscription(connection, ledger))
    hub.add_target("x")
    hub.add_target("y")
    return hub


def subscription(connection: str, ledger: Ledger) -> Subscription:
    return Subscription(connection, ledger.name, ledger.name, None, "snake", ledger.name, 10**15, 0)


def fan_out(hub: Hub, fate: Fate) -> None:
    shared = (hub.log, hub.state, hub.subscriptions, hub.connections, hub.wire)
    log, state, subscriptions, connections, wire = (Mortal(part, fate) for part in shared)
    broadcast = Broadcast(
        log,
        state,
        subscriptions,
        connections,
        wire,
        in_turn,
        hub.clock,
        lambda to, event: json.dumps([to.ledger, event.position]),
        lambda _: "farewell",
        lambda: True,
    )
    expect = ExpectDrain(Mortal(hub.drains, fate), Mortal(hub.agenda, fate), hub.clock)
    wake = WakeTargets(Mortal(hub.directory, fate), expect, Mortal(hub.wakes, fate), in_turn)
    index, rest = Mortal(hub.index_bell, fate), Mortal(hub.rest_bell, fate)
    failures = FanOut(index, rest, rest, wake, broadcast, lambda: True, hub.clock, in_turn)(PROJECTS, grown=True)
    failures.raise_first()


def test_fan_out_killed_at_any_call_is_finished_by_the_same_records_and_the_next_reminder() -> None:
    """S9, S10: nobody misses an event, and what comes twice is the slice that was on its way."""
    for where, hub in deaths(listened_to, fan_out):
        fan_out(hub, Fate())  # DynamoDB hands over the same records
        for ledger in PROJECTS:
            assert hub.cursor(ledger, "fan_out") == EVENTS, where
            for connection in ("c1", "c2"):
                heard = [json.loads(text) for text in hub.wire.sent[connection]]
                positions = [position for name, position in heard if name == ledger.name]
                assert list(dict.fromkeys(positions)) == list(range(1, EVENTS + 1)), where
                assert max(positions.count(position) for position in positions) <= 2, where
        assert set(PROJECTS) <= set(hub.index_bell.rung), where
        hub.now += MINUTE_MS
        hub.remind()
        assert hub.woken() == {"x", "y"}, where


# index


def test_index_killed_at_any_call_is_finished_by_its_ring() -> None:
    """S6"""

    def made() -> Hub:
        hub = Hub()
        hub.grow(PROJECTS[0])
        return hub

    def index(hub: Hub, fate: Fate) -> bool:
        log, state, index = (Mortal(part, fate) for part in (hub.log, hub.state, hub.index))
        return IndexPartitions(log, state, index, lambda: True)(PROJECTS[0])

    clean = made()
    index(clean, Fate())
    for where, hub in deaths(made, index):
        hub.grow(PROJECTS[0], EVENTS + 2)  # two more came meanwhile
        assert index(hub, Fate()) is True, where
        assert hub.cursor(PROJECTS[0], "index") == EVENTS + 2, where
        rows = hub.index.read(PROJECTS[0], "p", 0, 100).rows
        hits = {hit.position for row in rows for hit in row.hits}
        assert hits == set(range(1, EVENTS + 3)), where


# archive


def test_archive_killed_at_any_call_is_finished_by_its_ring_even_by_another() -> None:
    """C3: each position is in one object."""
    for at in itertools.count():
        hub = ArchiveHub()
        for name in ("sync#t#a", "sync#t#b"):
            hub.commit(name, 4)
        fate = Fate(at, after_effect=bool(at % 2))
        try:
            hub.archiver(fate)(hub.ledgers())
        except Died:
            hub.archiver()(hub.ledgers())
            prove_archive(hub)
            continue
        assert at > 10
        break


# remind, settle, sweep


def test_a_reminder_killed_at_any_call_is_made_good_by_the_next_minute() -> None:
    """D4"""

    def made() -> Hub:
        hub = Hub()
        for name in ("x", "y", "z"):
            hub.add_target(name)
            kept = hub.directory.get("t", name)
            assert kept is not None
            hub.agenda.note(kept.target.target(), [PROJECTS[0].name])
        return hub

    for where, hub in deaths(made, lambda hub, fate: hub.remind(fate)):
        hub.wakes.sent.clear()
        hub.now += MINUTE_MS
        assert hub.remind() == 3, where
        assert hub.woken() == {"x", "y", "z"}, where


MARKERS = stream_ledger("t", "rt", "markers")


def test_settle_killed_at_any_call_is_finished_by_the_next_minute_and_each_event_is_there_once() -> None:
    """M5"""
    group = marker_group("t", "rt")

    def made() -> Hub:
        hub = Hub()
        for key in ("a", "b"):
            pending = Announcement(MARKERS, Draft(f"marker-{key}-1", b"x" * 17, b"{}"), "C1")
            hub.rows.put(group, key, VersionedRow(1, {"record": {}, "deleted": False}, key, pending))
            hub.rows.leave(Intent(group, key, key), hub.now)
        hub.now += 2 * MINUTE_MS
        return hub

    def settle(hub: Hub, fate: Fate) -> int:
        rows: Any = Mortal(hub.rows, fate)
        announce = Announce(rows, hub.commit(fate), lambda: str(next(hub.numbers)), lambda _: None)
        return SettleMarkers(announce, rows, rows, hub.clock, lambda: True)(MINUTE_MS, Failures())

    for where, hub in deaths(made, settle):
        settle(hub, Fate())
        assert sorted(hub.committed(MARKERS)) == ["marker-a-1", "marker-b-1"], where
        for key in ("a", "b"):
            row = hub.rows.get(group, key)
            assert row is not None
            assert row.pending is None, where
        assert list(hub.rows.left_before(hub.now + 1)) == [], where


def test_a_sweep_killed_at_any_call_is_made_good_by_the_next() -> None:
    """S10: lost rings of every consumer and every target are found."""

    def made() -> Hub:
        hub = Hub()
        for ledger in PROJECTS:
            hub.grow(ledger)
        hub.add_target("x")
        hub.now += 10 * MINUTE_MS
        return hub

    def sweep(hub: Hub, fate: Fate) -> tuple[int, int]:
        log, state = Mortal(hub.log, fate), Mortal(hub.state, fate)
        watches = [Watch("index", Mortal(hub.index_bell, fate)), Watch("fan_out", Mortal(hub.rest_bell, fate), 1_000)]
        lag = Lag(log, state, Mortal(MemoryPositions(), fate), in_turn, hub.clock)
        directory, wakes = Mortal(hub.directory, fate), Mortal(hub.wakes, fate)
        expect = ExpectDrain(Mortal(hub.drains, fate), Mortal(hub.agenda, fate), hub.clock)
        targets = SweepTargets(lag, directory, expect, wakes, 1_000, hub.clock)(Failures())
        rounds = Mortal(hub.rounds, fate)
        swept = Sweep(log, state, rounds, watches, in_turn, hub.clock, lambda: True, targets)(Failures())
        return swept.rings, swept.others

    for where, hub in deaths(made, sweep):
        hub.index_bell.rung.clear()
        hub.rest_bell.rung.clear()
        hub.wakes.sent.clear()
        hub.now += 5 * MINUTE_MS
        assert sweep(hub, Fate()) == (4, 1), where
        assert set(hub.index_bell.rung) == set(hub.rest_bell.rung) == set(PROJECTS), where
        assert hub.woken() == {"x"}, where


# socket

DEMO = Ledger.of("sync", "t", "demo")
STREAM = {"kind": "stream", "runtime_id": "rt", "stream_id": "s"}
ITEM = {"id": "mine", "partitions": ["p"], "event": {"type": "t", "payload": 1}}
CONVERSATION: Sequence[tuple[str, Any]] = (
    ("connect", {"token": "good", "client_id": "me"}),
    ("sync", {"since_committed_id": 0}),
    ("subscribe", STREAM),
    ("submit_events", {"events": [ITEM]}),
    ("unsubscribe", {"subscription_id": "s0"}),
    ("disconnect", {}),
)


def converse(hub: Hub, fate: Fate) -> Converse:
    log, state, index = (Mortal(part, fate) for part in (hub.log, hub.state, hub.index))
    connections, subscriptions, wire = (Mortal(part, fate) for part in (hub.connections, hub.subscriptions, hub.wire))

    def nap(ms: int) -> None:
        hub.now += ms

    me = Identity("me", "t", frozenset({"demo"}), ("*",), frozenset({"producer", "consumer"}), "t", 10**15)
    places = TakePlace(Mortal(MemoryPlaces(hub.connections, hub.subscriptions), fate), 10, 10)
    submit, sync = (
        Submit(hub.commit(fate), hub.clock, lambda *_: "open"),
        Sync(log, state, index, Heads(hub.clock), in_turn),
    )
    subscribe = Subscribe(
        SendSnapshot(log, state, subscriptions, MemoryHandovers(), in_turn, hub.clock), Heads(hub.clock)
    )
    answers = Answers(lambda _: me, submit, sync, subscribe, subscriptions, wire, hub.clock, lambda: "s0", place=places)
    return Converse(connections, subscriptions, wire, answers, hub.clock, TakeTurn(connections, hub.clock, nap))


def say(hub: Hub, connection: str, kind: str, payload: Any, fate: Fate | None = None) -> list[dict[str, Any]]:
    hub.wire.sent[connection] = []
    message = {"type": kind, "protocol_version": "1.0", "payload": payload}
    converse(hub, fate or Fate())(connection, json.dumps(message))
    return [json.loads(text) for text in hub.wire.sent[connection]]


@pytest.mark.parametrize("number", range(len(CONVERSATION)), ids=[kind for kind, _ in CONVERSATION])
def test_socket_killed_at_any_call_leaves_a_connection_that_ends_and_a_client_that_loses_nothing(number: int) -> None:
    """S10, S14: the client connects again and sends the same ids; the old connection is closed by what comes next."""
    kind, payload = CONVERSATION[number]

    def made() -> Hub:
        hub = Hub()
        hub.grow(DEMO, 3)
        hub.connections.open("old", hub.now)
        for before, said in CONVERSATION[:number]:
            say(hub, "old", before, said)
        return hub

    def work(hub: Hub, fate: Fate) -> None:
        say(hub, "old", kind, payload, fate)

    for where, hub in deaths(made, work):
        # The old connection: whoever speaks on it next, or its deadline, ends it. Nobody waits for longer than a turn.
        before = hub.now
        heard = say(hub, "old", "heartbeat", {})
        assert hub.now - before <= TURN_MS, where
        if "old" not in hub.wire.closed and heard:
            assert heard[0]["type"] in ("heartbeat_ack", "error"), where
        hub.now += max(CONNECT_SECONDS * 1000, SENDER_MS, TURN_MS) + 1
        CloseStrangers(hub.connections, hub.wire, hub.clock)("old")
        # The client again, on a new connection.
        hub.connections.open("new", hub.now)
        assert say(hub, "new", "connect", CONVERSATION[0][1])[0]["type"] == "connected", where
        (result,) = say(hub, "new", "submit_events", {"events": [ITEM]})
        assert result["payload"]["results"][0]["status"] == "committed", where
        assert hub.committed(DEMO).count("mine") == 1, where
        (page,) = say(hub, "new", "sync", {"since_committed_id": 0})
        assert [event["committed_id"] for event in page["payload"]["events"]] == [1, 2, 3, 4], where
        # A broadcast reaches the new one, whatever is left of the old one.
        hub.wire.sent["new"] = []
        body = b'{"event":{"type":"t","payload":2}}'
        hub.commit()(DEMO, [Draft("late", digest(body), body, ("p",))], Origin("C"))
        broadcast_all(hub)
        assert [json.loads(text)["payload"]["id"] for text in hub.wire.sent["new"]][-1] == "late", where


def broadcast_all(hub: Hub) -> None:
    expired = lambda to: live_events.expired(to.dialect, to.project)  # noqa: E731 - one line says it
    parts = (hub.log, hub.state, hub.subscriptions, hub.connections, hub.wire)
    Broadcast(*parts, in_turn, hub.clock, live_events.Renderer(), expired, lambda: True)(DEMO)


# the page

WAITS = {
    "`fan_out`, from the wake queue": ("WakeQueue", 5 * 60),
    "`index`": ("IndexQueue", 60),
    "`archive`, from its queue": ("ArchiveQueue", 6 * 60),
    "`deliver`, before its first line": ("DeliverQueue", 60),
}
SCHEDULES = {"`remind`, `settle`": 60, "`sweep`": 5 * 60}


def told() -> dict[str, str]:
    """Worker → how long, as the table says it."""
    page = (Path(__file__).parents[3] / "docs/guarantees.md").read_text()
    table = page.partition("## When a worker dies")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    return {row[0]: row[2] for row in rows}


def seconds(text: str) -> int:
    number, unit = re.findall(r"(\d+) (s|minutes?)\b", text)[0]
    return int(number) * (1 if unit == "s" else 60)


@pytest.mark.parametrize("worker", WAITS)
def test_the_page_says_how_long_the_work_of_a_dead_worker_waits_in_its_queue(worker: str) -> None:
    queue, longest = WAITS[worker]
    visible = template()["Resources"][queue]["Properties"]["VisibilityTimeout"]
    assert seconds(told()[worker]) == longest
    assert longest - 60 < visible <= longest


@pytest.mark.parametrize("workers", SCHEDULES)
def test_the_page_says_when_a_scheduled_worker_runs_again(workers: str) -> None:
    assert seconds(told()[workers]) == SCHEDULES[workers]
    for name in re.findall(r"`(\w+)`", workers):
        (rule,) = (
            one for id_, one in of_type("AWS::Events::Rule").items() if id_.startswith(f"{name.capitalize()}Function")
        )
        minutes = SCHEDULES[workers] // 60
        assert rule["Properties"]["ScheduleExpression"] == f"rate({minutes} minute{'s' if minutes > 1 else ''})"


def test_every_worker_without_a_caller_is_in_the_table() -> None:
    named = {name for row in told() for name in re.findall(r"`(\w+)`", row)}
    assert {"deliver", "fan_out", "index", "archive", "remind", "settle", "sweep", "socket"} <= named
