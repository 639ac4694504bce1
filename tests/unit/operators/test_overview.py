"""How the hub stands as an operator sees it: bounded, in plain words, and only what the token reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.states import Status
from millrace.delivery.domain.targets import Blocked, TargetState
from millrace.delivery.ports.targets import Counted
from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import BadRequest, Forbidden
from millrace.ledger.domain.names import Ledger, catalog_ledger, realtime_ledger, stream_ledger
from millrace.live.adapters.memory import MemoryConnections, MemoryPlaces, MemorySubscriptions
from millrace.live.adapters.memory_sockets import MemoryOpenSockets
from millrace.live.ports import Connection, Subscription
from millrace.operators.adapters.registry import DynamoRegistry, MemoryRegistry
from millrace.operators.application.show_connections import ShowConnections
from millrace.operators.application.show_degraded import STREAMS, ShowDegraded
from millrace.operators.application.show_negotiations import ShowNegotiations
from millrace.operators.application.show_overview import LAST_EVENTS, LEDGERS, ShowOverview
from millrace.streams.adapters.memory import MemoryRuntimes
from millrace.streams.domain.negotiate import negotiate
from tests.unit.operators.test_ledgers import Fakes, HeardTarget, World, operator, stream_event, sync_ledger

MINUTE = 60_000


@dataclass
class KeptTarget(HeardTarget):
    paused: bool = False


@dataclass
class Kept:
    target: KeptTarget
    state: TargetState


@dataclass
class Targets(Fakes):
    states: dict[str, TargetState] = field(default_factory=dict)
    given_up: dict[str, int] = field(default_factory=dict)

    def kept(self, _identity: Identity) -> list[Any]:
        return [Kept(one, self.states.get(one.id, TargetState())) for one in self.targets]  # type: ignore[arg-type]

    def count_some(self, target_id: str, most_runs: int, status: Status | None = None) -> Counted:
        return Counted({Status.TERMINAL_FAILED: self.given_up.get(target_id, 0)}, complete=True)


@dataclass
class Hub(World):
    sockets: MemoryPlaces = field(default_factory=lambda: MemoryPlaces(MemoryConnections(), MemorySubscriptions()))
    fakes: Any = field(default_factory=Targets)

    def __post_init__(self) -> None:
        self.runtimes = MemoryRuntimes(self.state, lambda: self.now)

    def connections(self) -> ShowConnections:
        return ShowConnections(MemoryOpenSockets(self.sockets), in_turn)

    def degraded(self) -> ShowDegraded:
        return ShowDegraded(
            registry=MemoryRegistry(self.state),
            degraded=self.runtimes,
            log=self.log,
            state=self.state,
            heads=Heads(lambda: self.now),
            together=in_turn,
        )

    def overview(self, registry: Any = None) -> ShowOverview:
        return ShowOverview(
            ledgers=self.ledgers(registry),
            connections=self.connections(),
            targets=self.fakes,
            listing=self.fakes,
            degraded=self.runtimes,
            log=self.log,
            together=in_turn,
            clock=lambda: self.now,
        )

    def connect(self, id_: str, project: str, *ledgers: Ledger, tenant: str = "acme") -> None:
        bearer = Identity(f"client-{id_}", tenant, frozenset({project}), ("*",), frozenset({"consumer"}), tenant)
        self.sockets.connections.open(id_, self.now)
        turn = self.sockets.connections.line_up(id_, "connect", self.now)
        self.sockets.connections.end_turn(turn, Connection(id_, "snake", bearer, project), self.now)
        self.sockets.of_connection(tenant, id_)
        for number, ledger in enumerate(ledgers):
            self.sockets.subscriptions.add(Subscription(id_, f"s{number}", ledger.name, None, "snake", project, 0, 0))

    def caught_up(self, ledger: Ledger, head: int) -> None:
        for consumer in ("index", "fan_out", "archive"):
            self.state.move_cursor(ledger, consumer, self.state.marks(ledger).cursors.get(consumer, 0), head)


def words(shown: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["severity"], one["what"], one["help"]) for one in shown["problems"]]


def test_a_hub_without_anything_is_well() -> None:
    shown = replace(Hub().overview(), together=Threads())(operator())
    assert (shown["looked_at"], shown["more"], shown["problems"], shown["degraded"]) == (0, False, [], 0)
    assert shown["targets"] == {"well": 0, "paused": 0, "blocked": 0}
    assert set(shown["stages"]) == {"fan_out", "index", "archive", "targets"}


def test_a_stage_that_is_late_is_named_in_plain_words_with_a_command_that_helps() -> None:
    hub = Hub()
    late, well = sync_ledger("demo"), catalog_ledger("acme", "orders")
    hub.commit(late, {"id": "a"}, {"id": "b"})
    hub.commit(well, {"id": "a", "event_type": "t"})
    hub.caught_up(well, 1)
    hub.caught_up(late, 2)
    hub.commit(late, {"id": "c"})
    hub.state.move_cursor(late, "archive", 2, 3)
    hub.state.move_cursor(late, "index", 2, 3)
    hub.now += 90_000
    shown = hub.overview()(operator())
    behind = {"worst_lag_seconds": 90.0, "lag_events": 1, "ledgers_behind": 1}
    assert shown["stages"]["fan_out"] == {"events_read": 3, "gaps": 0, **behind}
    up_to_date = {"worst_lag_seconds": 0.0, "lag_events": 0, "ledgers_behind": 0}
    assert shown["stages"]["archive"] == {"events_read": 4, "gaps": 0, **up_to_date}
    assert words(shown) == [("warning", "fan_out is 90 s behind in sync demo.", "make logs")]
    hub.now += 600_000
    assert words(hub.overview()(operator()))[0] == ("error", "fan_out is 690 s behind in sync demo.", "make logs")


def test_a_stage_whose_next_event_was_pruned_has_a_gap() -> None:
    hub, ledger = Hub(), sync_ledger("demo")
    hub.commit(ledger, *({"id": f"e{number}"} for number in range(5)))
    hub.caught_up(ledger, 2)
    hub.state.raise_floor(ledger, 3)
    assert {one["gaps"] for one in hub.overview()(operator())["stages"].values()} == {0}
    hub.state.raise_floor(ledger, 4)
    hub.state.move_cursor(ledger, "archive", 2, 5)
    shown = hub.overview()(operator())["stages"]
    assert {stage: one["gaps"] for stage, one in shown.items()} == {
        "fan_out": 1,
        "index": 1,
        "archive": 0,
        "targets": 0,
    }


def test_targets_that_stand_still_or_have_given_up_come_with_what_to_do() -> None:
    hub = Hub()
    hub.commit(sync_ledger("demo"), {"id": "a"})
    hub.caught_up(sync_ledger("demo"), 1)
    ids = ("well", "asked", "gone", "dead", "shy", "stingy")
    hub.fakes.targets = [KeptTarget(id_, f"acme#{id_}", paused=id_ == "asked") for id_ in ids]
    hub.fakes.at_position = {(f"acme#{id_}", sync_ledger("demo").name): 1 for id_ in ("well", "stingy")}
    hub.fakes.states = {
        "gone": TargetState(paused_why="answered 410."),
        "dead": TargetState(blocked=Blocked.NETWORK_UNAVAILABLE, blocked_detail="cannot be reached"),
        "shy": TargetState(circuit=Circuit(3, hub.now + 900_000)),
    }
    hub.fakes.given_up = {"acme#stingy": 2}
    hub.now += 400_000
    shown = hub.overview()(operator())
    assert shown["targets"] == {"well": 2, "paused": 2, "blocked": 2}
    assert words(shown) == [
        ("error", "Target dead gets nothing: cannot be reached.", "millrace targets list"),
        (
            "error",
            "Target shy gets nothing: it failed too often, and is left alone for a while.",
            "millrace targets list",
        ),
        (
            "error",
            "Target stingy did not take 2 events; the hub has given up on them.",
            "millrace targets retry stingy --status terminal_failed",
        ),
        ("warning", "Target asked is paused: an operator paused it.", "millrace targets resume asked"),
        ("warning", "Target gone is paused: answered 410.", "millrace targets resume gone"),
    ]


def test_events_of_the_last_hour_are_counted_by_minute() -> None:
    hub = Hub(now=100 * MINUTE)
    ledger = sync_ledger("demo")
    hub.commit(ledger, {"id": "old"})
    hub.now += 50 * MINUTE
    hub.commit(ledger, {"id": "a"}, {"id": "b"})
    hub.now += 20 * MINUTE
    hub.commit(ledger, {"id": "c"})
    hub.commit(realtime_ledger("acme", "s1"), {"id": "d", "type": "call.started"})
    shown = hub.overview()(operator())["events_per_minute"]
    calls = [{"minute_ms": 170 * MINUTE, "events": 1}]
    assert shown == {
        "minutes": [{"minute_ms": 150 * MINUTE, "events": 2}, {"minute_ms": 170 * MINUTE, "events": 2}],
        "by_contract": {"realtime": calls, "sync": [{"minute_ms": 150 * MINUTE, "events": 2}, *calls]},
        "truncated": False,
    }


def test_a_busy_hour_is_read_no_further_than_its_last_events() -> None:
    hub = Hub(now=100 * MINUTE)
    for number in range(LAST_EVENTS + 50):
        hub.commit(sync_ledger("demo"), {"id": f"e{number}"})
    shown = hub.overview()(operator())["events_per_minute"]
    minutes = [{"minute_ms": 100 * MINUTE, "events": LAST_EVENTS}]
    assert shown == {"minutes": minutes, "by_contract": {"sync": minutes}, "truncated": True}


class CountedCalls:
    """Counts every call of what it stands before."""

    def __init__(self, inner: Any, calls: list[str]) -> None:
        self.inner, self.calls = inner, calls

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            self.calls.append(name)
            return getattr(self.inner, name)(*given, **named)

        return call


class SortedTable:
    """A table of ledgers' names, sorted once, that counts its queries and the rows they read."""

    def __init__(self, calls: list[str]) -> None:
        self.calls, self.names = calls, dict[str, list[str]]()

    def put_item(self, *, Item: Any, **_: Any) -> None:  # noqa: N803 - DynamoDB's name
        self.names.setdefault(Item["p"]["S"], []).append(Item["s"]["S"])

    def query(self, **asked: Any) -> Any:
        values = {name: value["S"] for name, value in asked["ExpressionAttributeValues"].items()}
        found = [name for name in self.names.get(values[":p"], ()) if values[":begin"] <= name <= values[":end"]]
        self.calls += ["registry", *("row" for _ in found[: asked["Limit"]])]
        answer = {"Items": [{"s": {"S": name}} for name in found[: asked["Limit"]]]}
        return answer | ({"LastEvaluatedKey": {}} if len(found) > asked["Limit"] else {})


def counted(ledgers: int) -> tuple[list[str], list[str]]:
    """The reads of the list's first page, and those of the overview. The first ledgers by name have events."""
    hub, calls = Hub(), list[str]()
    table = SortedTable(calls)
    for number in range(ledgers):
        ledger = catalog_ledger("acme", f"domain-{number:06d}")
        DynamoState(table, "state").register(ledger)  # type: ignore[arg-type]
        if number < 60:
            hub.commit(ledger, {"id": "a", "event_type": "t"})
    registry = DynamoRegistry(table, "state", in_turn)  # type: ignore[arg-type]
    hub.log, hub.state = CountedCalls(hub.log, calls), CountedCalls(hub.state, calls)  # type: ignore[assignment]
    assert len(hub.ledgers(registry)(operator(), "catalog", "", "", 50)["ledgers"]) == 50
    listed = list(calls)
    calls.clear()
    shown = hub.overview(registry)(operator())
    assert (shown["looked_at"], shown["more"]) == (LEDGERS, True)
    return listed, calls


def test_the_list_and_the_overview_read_as_much_of_a_hundred_ledgers_as_of_a_hundred_thousand() -> None:
    few, many = counted(100), counted(100_000)
    for of_few, of_many in zip(few, many, strict=True):
        few_rows, many_rows = of_few.count("row"), of_many.count("row")
        assert sorted(of_few)[: -few_rows or None] == sorted(of_many)[: -many_rows or None]
        assert many_rows <= 100, "names are read from shards, of which a hundred ledgers do not fill each"
        assert len(of_many) - many_rows <= 250


def test_connections_are_shown_with_what_they_subscribed_to_and_the_token_reaches() -> None:
    hub = Hub()
    hub.connect("c1", "demo", sync_ledger("demo"), realtime_ledger("acme", "s1"), stream_ledger("acme", "rt-1", "main"))
    hub.connect("c2", "demo")
    hub.connect("c3", "secret", sync_ledger("secret"))
    hub.connect("c4", "demo", tenant="other")
    shown = hub.connections()(operator("runtime:*"), "", "", 10)
    assert shown == {
        "connections": [
            {
                "connection": "c1",
                "client_id": "client-c1",
                "project": "demo",
                "subscriptions": [
                    {"subscription_id": "s0", "contract": "sync", "scope": "demo"},
                    {"subscription_id": "s2", "contract": "streams", "scope": "rt-1:main"},
                ],
            },
            {"connection": "c2", "client_id": "client-c2", "project": "demo", "subscriptions": []},
        ],
        "next": None,
    }
    counts = hub.overview()(operator())
    assert (counts["connections"], counts["subscriptions"]) == (2, 3)
    with pytest.raises(Forbidden):
        hub.connections()(operator(), "secret", "", 10)


def test_pages_of_connections_have_each_once_and_may_be_short() -> None:
    hub = Hub()
    for number in range(7):
        hub.connect(f"c{number}", "demo" if number % 2 else "secret")
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = hub.connections()(operator(), "demo", after, 2)
        found, after = found + [one["connection"] for one in page["connections"]], page["next"]
    assert found == ["c1", "c3", "c5"]


def degraded_pages(hub: Hub, limit: int) -> tuple[list[tuple[str, str, int]], list[tuple[str, int, int]]]:
    found: list[tuple[str, str, int]] = []
    gaps: list[tuple[str, int, int]] = []
    after: str | None = ""
    while after is not None:
        page = hub.degraded()(operator("runtime:rt-1"), "rt-1", after, limit)
        assert len(page["degraded"]) <= limit
        found += [(one["stream_id"], one["subscription"], one["floor"]) for one in page["degraded"]]
        gaps += [(one["stream_id"], one["floor"], one["head"]) for one in page["gaps"]]
        after = page["next"]
    return found, gaps


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
def test_subscriptions_that_lost_history_and_gaps_are_each_shown_once(limit: int) -> None:
    """T9."""
    hub = Hub()
    streams = [f"s{number:02d}" for number in range(STREAMS + 5)]
    for stream in streams:
        hub.commit(stream_ledger("acme", "rt-1", stream), stream_event("a"), stream_event("b"), stream_event("c"))
    hub.commit(stream_ledger("acme", "rt-10", "s00"), stream_event("a"))
    hub.runtimes.mark(stream_ledger("acme", "rt-10", "s00"), "foreign")
    expected: list[tuple[str, str, int]] = []
    for stream, subscriptions in (("s00", "ab"), ("s03", "abc"), (streams[-1], "z")):
        hub.state.raise_floor(stream_ledger("acme", "rt-1", stream), 3)
        for name in subscriptions:
            hub.runtimes.mark(stream_ledger("acme", "rt-1", stream), name)
            expected.append((stream, name, 3))
    hub.state.raise_floor(stream_ledger("acme", "rt-1", "s01"), 2)
    assert degraded_pages(hub, limit) == (
        expected,
        [("s00", 3, 3), ("s01", 2, 3), ("s03", 3, 3), (streams[-1], 3, 3)],
    )


def test_degraded_subscriptions_are_counted_in_the_overview_and_told_of() -> None:
    hub = Hub()
    ledger = stream_ledger("acme", "rt-1", "main")
    hub.commit(ledger, stream_event("a"))
    hub.caught_up(ledger, 1)
    hub.runtimes.mark(ledger, "x")
    shown = hub.overview()(operator())
    assert shown["degraded"] == 1
    assert words(shown) == [
        (
            "warning",
            "1 subscription has lost history of streams rt-1:main: a reader has to poll without a cursor.",
            "millrace streams poll rt-1 main",
        )
    ]


def test_what_each_client_of_a_runtime_negotiated_is_told_page_by_page() -> None:
    """T5"""
    hub = Hub()
    agreed = negotiate({"supported_contract_versions": [2], "profile": "embedded-alloc"})
    for client in ("C1", "C2", "C3"):
        hub.runtimes.negotiate("acme", "rt-1", client, agreed)
    hub.runtimes.negotiate("other", "rt-1", "C9", agreed)
    show = ShowNegotiations(hub.runtimes)
    first = show(operator("runtime:rt-1"), "rt-1", "", 2)
    assert ([one["client_id"] for one in first["negotiations"]], first["next"]) == (["C1", "C2"], "C2")
    assert first["negotiations"][0] == {"client_id": "C1", "profile": "embedded-alloc", **agreed.answer("rt-1")}
    rest = show(operator("runtime:rt-1"), "rt-1", "C2", 2)
    assert ([one["client_id"] for one in rest["negotiations"]], rest["next"]) == (["C3"], None)


def test_who_is_no_operator_or_does_not_reach_a_runtime_is_refused() -> None:
    hub = Hub()
    consumer = Identity("C1", "acme", frozenset({"demo"}), ("*",), frozenset({"consumer", "producer"}), "acme")
    refused: Sequence[Any] = (
        lambda: hub.overview()(consumer),
        lambda: hub.connections()(consumer, "", "", 10),
        lambda: hub.degraded()(consumer, "rt-1", "", 10),
        lambda: hub.degraded()(operator("runtime:rt-10"), "rt-1", "", 10),
        lambda: ShowNegotiations(hub.runtimes)(consumer, "rt-1", "", 10),
        lambda: ShowNegotiations(hub.runtimes)(operator("runtime:rt-10"), "rt-1", "", 10),
    )
    for call in refused:
        with pytest.raises(Forbidden):
            call()
    with pytest.raises(BadRequest):
        hub.degraded()(operator(), "rt-1", "a#b#c", 10)
