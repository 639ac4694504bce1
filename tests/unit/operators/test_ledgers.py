"""Ledgers and events as an operator sees them: bounded, by position, and only what the token reaches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from millrace.delivery.application.find_event import FindEvent
from millrace.delivery.domain.states import Delivery, Status
from millrace.delivery.ports.targets import Position
from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryState, in_turn
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.canonical import canonical, digest
from millrace.ledger.domain.errors import BadRequest, Forbidden, NotFound
from millrace.ledger.domain.names import Ledger, catalog_ledger, stream_ledger
from millrace.ledger.domain.page import Draft, Origin
from millrace.operators.adapters.registry import DynamoRegistry, MemoryRegistry
from millrace.operators.application.known_targets import KnownTargets
from millrace.operators.application.read_events import LOOKED_AT, EventFilter, ReadEvents
from millrace.operators.application.show_ledgers import MOST_SPANS, ShowLedgers
from tests.support.table import Table

ALL = EventFilter()


def operator(*partitions: str, projects: tuple[str, ...] = ("demo",)) -> Identity:
    return Identity("ops", "acme", frozenset(projects), partitions or ("*",), frozenset({"operator"}), "acme")


@dataclass
class HeardTarget:
    id: str
    key: str
    sources: tuple[Any, ...] = ()
    scoped: bool = False

    def hears(self, _ledger: str) -> bool:
        return True

    def target(self) -> str:
        return self.key


@dataclass
class Fakes:
    """Directory, positions and listing of deliveries; each holds what a test puts into it."""

    targets: list[HeardTarget] = field(default_factory=list)
    at_position: dict[tuple[str, str], int] = field(default_factory=dict)
    delivered: dict[tuple[str, str, int], Delivery] = field(default_factory=dict)

    def __call__(self, _identity: Identity) -> list[HeardTarget]:
        return self.targets

    def of(self, target: str, ledgers: list[str]) -> Mapping[str, Position]:
        known = {name: self.at_position.get((target, name)) for name in ledgers}
        return {name: Position(at) for name, at in known.items() if at is not None}

    def at(self, target: str, ledger: str, position: int) -> Delivery | None:
        return self.delivered.get((target, ledger, position))


@dataclass
class World:
    now: int = 1_000_000
    claims: MemoryClaims = field(default_factory=MemoryClaims)
    log: MemoryLog = field(default_factory=MemoryLog)
    state: MemoryState = field(default_factory=MemoryState)
    fakes: Any = field(default_factory=Fakes)
    made: int = 0

    def nonce(self) -> bytes:
        self.made += 1
        return str(self.made).encode()

    def commit(self, ledger: Ledger, *bodies: dict[str, Any], partitions: tuple[str, ...] = ()) -> None:
        commit = Commit(
            claims=self.claims,
            log=self.log,
            state=self.state,
            heads=Heads(lambda: self.now),
            together=in_turn,
            clock=lambda: self.now,
            nonce=self.nonce,
            pause=lambda _: None,
        )
        drafts = [Draft(body["id"], digest(canonical(body)), canonical(body), partitions) for body in bodies]
        commit(ledger, drafts, Origin("C1"))

    def ledgers(self, registry: Any = None) -> ShowLedgers:
        return ShowLedgers(
            registry=registry or MemoryRegistry(self.state),
            log=self.log,
            state=self.state,
            heads=Heads(lambda: self.now),
            targets=self.fakes,
            positions=self.fakes,
            together=in_turn,
            clock=lambda: self.now,
        )

    def events(self) -> ReadEvents:
        return ReadEvents(
            log=self.log,
            state=self.state,
            heads=Heads(lambda: self.now),
            together=in_turn,
            find_event=FindEvent(self.claims, self.log, in_turn, self.fakes),
            targets=self.fakes,
            positions=self.fakes,
            listing=self.fakes,
        )

    def read(self, who: Identity, contract: str, scope: str, **asked: Any) -> dict[str, Any]:
        return self.events()(who, contract, scope, **{"after": 0, "at_ms": None, "limit": 100, "wanted": ALL, **asked})


def stream_event(id_: str, kind: str = "MessageSent") -> dict[str, Any]:
    return {"id": id_, "event_type": kind}


def sync_ledger(project: str) -> Ledger:
    return Ledger.of("sync", "acme", project)


def scopes(page: dict[str, Any]) -> list[str]:
    return [ledger["scope"] for ledger in page["ledgers"]]


def test_a_ledger_shows_how_far_each_reader_and_target_has_got_and_how_late_it_is() -> None:
    world = World()
    ledger = sync_ledger("demo")
    world.commit(ledger, {"id": "a"}, {"id": "b"})
    world.now += 5_000
    world.commit(ledger, {"id": "c"})
    world.state.move_cursor(ledger, "index", 0, 2)
    world.state.move_cursor(ledger, "archive", 0, 3)
    world.fakes.targets = [HeardTarget("hub", "acme#hub")]
    world.fakes.at_position["acme#hub", ledger.name] = 3
    world.now += 2_000
    (shown,) = world.ledgers()(operator(), "sync", "", "", 50)["ledgers"]
    assert (shown["head"], shown["floor"], shown["events"], shown["last_commit_ms"]) == (3, 1, 3, 1_005_000)
    assert shown["stages"] == {
        "index": {"position": 2, "lag_events": 1, "lag_seconds": 2.0},
        "fan_out": {"position": 0, "lag_events": 3, "lag_seconds": 7.0},
        "archive": {"position": 3, "lag_events": 0, "lag_seconds": 0.0},
    }
    assert shown["targets"] == [{"target_id": "hub", "position": 3, "lag_events": 0, "lag_seconds": 0.0}]
    assert world.ledgers().one(operator(), "sync", "demo") == shown


def test_where_there_is_no_ledger_the_list_is_empty() -> None:
    show = replace(World().ledgers(), together=Threads())
    assert show(operator(), "sync", "", "", 50) == {"ledgers": [], "next": None}


def test_pages_in_order_of_names_have_every_ledger_once() -> None:
    world = World()
    names = sorted(f"domain-{number}" for number in range(25))
    for name in reversed(names):
        world.commit(catalog_ledger("acme", name), {"id": "a", "event_type": "t"})
    world.commit(catalog_ledger("other", "domain-0"), {"id": "a"})
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = world.ledgers()(operator(), "catalog", "", after, 7)
        found += scopes(page)
        after = page["next"]
    assert found == names
    assert scopes(world.ledgers()(operator(), "catalog", "domain-2", "", 50)) == [
        "domain-2", "domain-20", "domain-21", "domain-22", "domain-23", "domain-24",
    ]  # fmt: skip


def test_a_token_gets_the_ledgers_that_it_reaches_and_no_others() -> None:
    world = World()
    for runtime in ("rt-1", "rt-10", "rt-2", "x:y"):
        world.commit(stream_ledger("acme", runtime, "main"), stream_event("a"))
    world.commit(sync_ledger("demo"), {"id": "a"})
    world.commit(sync_ledger("secret"), {"id": "a"})
    show = world.ledgers()
    assert scopes(show(operator("runtime:rt-1"), "streams", "", "", 50)) == ["rt-1:main"]
    assert scopes(show(operator("runtime:rt-1*"), "streams", "", "", 50)) == ["rt-1:main", "rt-10:main"]
    assert scopes(show(operator("runtime:rt-1*", "runtime:rt-2"), "streams", "rt-2", "", 50)) == ["rt-2:main"]
    assert scopes(show(operator("run*"), "streams", "x%3Ay:ma", "", 50)) == ["x%3Ay:main"]
    assert scopes(show(operator("session:*"), "streams", "", "", 50)) == []
    assert scopes(show(operator(), "sync", "", "", 50)) == ["demo"]
    with pytest.raises(Forbidden):
        show.one(operator(), "sync", "secret")
    with pytest.raises(Forbidden):
        show.one(operator("runtime:rt-1"), "streams", "rt-10:main")


def test_a_token_that_names_hundreds_of_projects_without_ledgers_gets_short_pages_and_comes_to_the_end() -> None:
    world = World()
    projects = tuple(f"p{number:04d}" for number in range(3 * MOST_SPANS))
    world.commit(sync_ledger(projects[-1]), {"id": "a"})
    found: list[str] = []
    after: str | None = ""
    pages = 0
    while after is not None:
        page = world.ledgers()(operator(projects=projects), "sync", "", after, 50)
        found, after, pages = found + scopes(page), page["next"], pages + 1
    assert (found, pages) == ([projects[-1]], 3)


class CountingTable(Table):
    """Tells what queries cost; sorted once, so that very many items are no burden."""

    calls = rows = 0

    def query(self, **asked: Any) -> Any:
        values = {name: value["S"] for name, value in asked["ExpressionAttributeValues"].items()}
        names = self.sorted.get(values[":p"], [])
        found = [name for name in names if values[":begin"] <= name <= values[":end"]]
        taken = found[: asked["Limit"]]
        self.calls += 1
        self.rows += len(taken)
        answer: dict[str, Any] = {"Items": [{"s": {"S": name}} for name in taken]}
        return answer | ({"LastEvaluatedKey": {}} if len(found) > len(taken) else {})

    def fill(self, count: int) -> None:
        state = DynamoState(self, "state")  # type: ignore[arg-type]
        for number in range(count):
            state.register(catalog_ledger("acme", f"domain-{number:06d}"))
        self.sorted: dict[str, list[str]] = {}
        for p, s in sorted(self.items):
            self.sorted.setdefault(p, []).append(s)


def test_the_first_page_of_a_hundred_thousand_ledgers_costs_what_it_costs_of_a_hundred() -> None:
    costs = {}
    for count in (100, 100_000):
        table = CountingTable()
        table.fill(count)
        begin = catalog_ledger("acme", "").name
        page = DynamoRegistry(table, "state", in_turn).page(begin, begin + "~", 50)  # type: ignore[arg-type]
        assert page == [catalog_ledger("acme", f"domain-{number:06d}").name for number in range(50)]
        costs[count] = (table.calls, table.rows)
    assert costs[100_000][0] <= 2 * costs[100][0], costs
    assert costs[100_000][1] <= 2 * costs[100][1], costs
    assert costs[100_000][1] <= 200, costs


def test_events_are_read_by_position_with_their_content_and_who_committed_them() -> None:
    world = World()
    ledger = stream_ledger("acme", "rt-1", "main")
    world.commit(ledger, stream_event("a"), stream_event("b", "Other"))
    page = world.read(operator("runtime:rt-1"), "streams", "rt-1:main", after=1)
    assert page == {
        "events": [
            {
                "position": 2,
                "id": "b",
                "committed_ms": 1_000_000,
                "type": "Other",
                "partitions": [],
                "by": {"client_id": "C1"},
                "pruned": False,
                "bytes": len(canonical(stream_event("b", "Other"))),
                "content": stream_event("b", "Other"),
            }
        ],
        "next_after": 2,
        "head": 2,
        "floor": 1,
    }


def test_a_filter_looks_at_a_bounded_number_of_positions_and_says_how_far() -> None:
    world = World()
    ledger = stream_ledger("acme", "rt-1", "main")
    for begin in range(0, LOOKED_AT + 500, 500):
        world.commit(ledger, *(stream_event(f"e{number}") for number in range(begin, begin + 500)))
    world.commit(ledger, stream_event("last", "Rare"))
    wanted = EventFilter(type="Rare")
    first = world.read(operator(), "streams", "rt-1:main", wanted=wanted)
    assert (first["events"], first["next_after"]) == ([], LOOKED_AT)
    second = world.read(operator(), "streams", "rt-1:main", wanted=wanted, after=LOOKED_AT)
    assert [event["id"] for event in second["events"]] == ["last"]
    assert second["next_after"] == second["head"]


def test_reading_begins_at_the_first_event_of_a_time() -> None:
    world = World()
    ledger = stream_ledger("acme", "rt-1", "main")
    for number in range(40):
        world.now = 1_000_000 + 1_000 * number
        world.commit(ledger, stream_event(f"a{number}"), stream_event(f"b{number}"))
    for at_ms, first in ((0, 1), (1_000_000, 1), (1_007_000, 15), (1_007_001, 17), (1_039_000, 79)):
        page = world.read(operator(), "streams", "rt-1:main", at_ms=at_ms, limit=1)
        assert page["events"][0]["position"] == first, at_ms
    assert world.read(operator(), "streams", "rt-1:main", at_ms=1_039_001)["events"] == []


def test_of_a_project_only_events_of_reached_partitions_are_shown() -> None:
    world = World()
    ledger = sync_ledger("demo")
    world.commit(ledger, {"id": "a", "event": {"type": "order.paid"}}, partitions=("orders",))
    world.commit(ledger, {"id": "b", "event": {"type": "user.left"}}, partitions=("users",))
    narrow = operator("orders")
    assert [event["id"] for event in world.read(narrow, "sync", "demo")["events"]] == ["a"]
    assert [event["type"] for event in world.read(operator(), "sync", "demo")["events"]] == ["order.paid", "user.left"]
    chosen = world.read(operator(), "sync", "demo", wanted=EventFilter(partition="users"))
    assert [event["id"] for event in chosen["events"]] == ["b"]
    with pytest.raises(NotFound):
        world.events().one(narrow, "sync", "demo", "b")


def test_a_pruned_event_is_named_as_pruned() -> None:
    world = World()
    ledger = stream_ledger("acme", "rt-1", "main")
    world.commit(ledger, stream_event("a"))
    page = world.log.holding(ledger, 1)
    assert page is not None
    assert world.log.replace(ledger, page.emptied([1]))
    (event,) = world.read(operator(), "streams", "rt-1:main")["events"]
    assert (event["id"], event["pruned"], event["type"], "content" in event) == ("a", True, None, False)


def test_an_event_is_found_by_its_id_with_what_became_of_it_at_each_target() -> None:
    world = World()
    ledger = stream_ledger("acme", "rt-1", "main")
    world.commit(ledger, stream_event("a"), stream_event("b"))
    world.fakes.targets = [HeardTarget(name, f"acme#{name}") for name in ("has", "late", "passed", "tries")]
    world.fakes.delivered["acme#has", ledger.name, 2] = Delivery(Status.DUPLICATE, 1, 5, 6)
    world.fakes.delivered["acme#tries", ledger.name, 2] = Delivery(Status.TRANSIENT, 3, 5, 9, 20, "503")
    world.fakes.at_position |= {("acme#passed", ledger.name): 2, ("acme#late", ledger.name): 1}
    found = world.events().one(operator(), "streams", "rt-1:main", "b")
    assert (found["event"]["position"], found["event"]["content"]) == (2, stream_event("b"))
    states = {one["target_id"]: (one["state"], one["attempts"], one["error"]) for one in found["deliveries"]}
    assert states == {
        "has": ("delivered", 1, None),
        "late": ("waiting", 0, None),
        "passed": ("not_sent", 0, None),
        "tries": ("transient", 3, "503"),
    }
    assert {one["event_id"] for one in found["deliveries"]} == {"streams:rt-1:main:b"}, "as the targets know it"
    with pytest.raises(NotFound):
        world.events().one(operator(), "streams", "rt-1:main", "c")
    with pytest.raises(BadRequest):
        world.events().one(operator(), "streams", "rt-1:main", "")


def test_there_is_no_ledger_without_an_event_and_a_pattern_is_no_ledger() -> None:
    world = World()
    with pytest.raises(NotFound):
        world.ledgers().one(operator(), "catalog", "orders")
    with pytest.raises(NotFound):
        world.read(operator(), "catalog", "orders")
    with pytest.raises(BadRequest):
        world.ledgers().one(operator(), "catalog", "ord*")
    with pytest.raises(BadRequest):
        world.ledgers()(operator(), "nothing", "", "", 50)


def test_a_consumer_is_refused() -> None:
    world = World()
    world.commit(sync_ledger("demo"), {"id": "a"})
    consumer = Identity("C1", "acme", frozenset({"demo"}), ("*",), frozenset({"consumer", "producer"}), "acme")
    with pytest.raises(Forbidden):
        world.ledgers()(consumer, "sync", "", "", 50)
    with pytest.raises(Forbidden):
        world.ledgers().one(consumer, "sync", "demo")
    with pytest.raises(Forbidden):
        world.read(consumer, "sync", "demo")
    with pytest.raises(Forbidden):
        world.events().one(consumer, "sync", "demo", "a")


def test_a_target_with_a_source_out_of_reach_is_not_shown() -> None:
    from millrace.delivery.domain.sources import Source

    everything = HeardTarget("all", "acme#all", (Source("sync", "*"),))
    orders = HeardTarget("orders", "acme#orders", (Source("catalog", "orders"),))

    class Directory:
        def of(self, _tenant: str) -> list[Any]:
            return [type("Kept", (), {"target": target})() for target in (everything, orders)]

    known = KnownTargets(Directory())  # type: ignore[arg-type]
    assert [target.id for target in known(operator("catalog:orders"))] == ["orders"]
    assert json.dumps([target.id for target in known(operator(projects=("*",)))]) == '["all", "orders"]'
