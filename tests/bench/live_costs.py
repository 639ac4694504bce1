"""What live delivery costs in DynamoDB: a fan-out run by what it finds, a message, a subscription."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, cast

from millrace.ledger.adapters.dynamodb.batch import put_all
from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft
from millrace.live.adapters.dynamodb.subscriptions import DynamoSubscriptions
from millrace.live.adapters.memory import MemoryHandovers, MemoryWire
from millrace.live.application.answer import Answers
from millrace.live.application.broadcast import Broadcast
from millrace.live.application.converse import Converse
from millrace.live.application.send_snapshot import SendSnapshot
from millrace.live.application.subscribe import Subscribe
from millrace.live.application.take_turn import TakeTurn
from millrace.live.domain import events as live_events
from millrace.live.domain.events import SYNC
from millrace.live.domain.messages import PROTOCOL, to_text
from millrace.live.ports import Subscription
from millrace.sync.application.submit import Submit
from millrace.sync.application.sync import Sync
from tests.bench.events import IDENTITY, PARTITIONS, drafts, items
from tests.bench.report import Figure, exactly
from tests.bench.rig import Clock, Rig
from tests.bench.tally import Counts

TABLES = ("claims", "log", "state", "index", "connections")
HOUR_MS = 3_600_000
BYSTANDERS = 1_000
SUBSCRIBERS = (1, 10, 100)
EVENTS = (1, 25)
BACKLOG = 1_000
TEAMS = tuple(f"team-{number}" for number in range(PARTITIONS))
ONE, EACH_ONE, EACH_ALL = "one partition", "ten partitions, each hears one", "ten partitions, each hears all"
SPREADS = (ONE, EACH_ONE, EACH_ALL)
_SEEDS = count(700_000)
_CONNECTIONS = count()


@dataclass(slots=True)
class CountingWire(MemoryWire):
    """Posts are calls to API Gateway: counted, not sent."""

    posts: int = 0

    def post(self, connection: str, text: str) -> bool:
        self.posts += 1
        return MemoryWire.post(self, connection, text)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the fan-out, from its cursor to the head."""

    counts: Counts
    events: int
    subscribers: int
    posts: int

    @property
    def calls(self) -> int:
        return self.counts.calls_to(*TABLES)

    @property
    def cost(self) -> dict[str, int]:
        """What must not change with those who listen elsewhere."""
        return {
            "calls": self.calls,
            "write units": self.counts.write_units(*TABLES),
            "read units": self.counts.read_units(*TABLES),
            "round trips": self.counts.rounds,
            "posts": self.posts,
        }

    def row(self, spread: str) -> dict[str, Any]:
        return {
            "spread": spread,
            "subscribers": self.subscribers,
            "events": self.events,
            **self.cost,
            "read units, subscriptions": self.counts.read_units("connections"),
            "calls per post": round(self.calls / max(1, self.posts), 3),
            "units per post": round(
                (self.counts.write_units(*TABLES) + self.counts.read_units(*TABLES)) / max(1, self.posts), 3
            ),
        }


def subscription(ledger: Ledger, partitions: Sequence[str] | None) -> Subscription:
    """As a sync makes it; connection ids are as long as API Gateway's."""
    named = None if partitions is None else tuple(partitions)
    connection = f"L0SM9cOFvHcC{next(_CONNECTIONS):04d}"
    return Subscription(connection, SYNC, ledger.name, named, "snake", "demo", Clock()() + HOUR_MS, 0)


def fan_out(rig: Rig, spread: str, subscribers: int, events: int, bystanders: int = 0) -> Run:
    """A ledger of its own with `subscribers` who hear, and `bystanders` who listen to its other partitions."""
    ledger = rig.ledger()
    add_many(rig, [subscription(ledger, heard(spread, number)) for number in range(subscribers)])
    add_many(rig, [subscription(ledger, [f"elsewhere-{number % 50}"]) for number in range(bystanders)])
    rig.fill(ledger, [one_in(draft, spread) for draft in drafts("realistic", events, next(_SEEDS))], events)
    wire = CountingWire()
    broadcast = _broadcast(rig, wire)
    with rig.tally.measured() as counts:
        assert broadcast(ledger)
    assert not wire.closed
    return Run(counts, events, subscribers, wire.posts)


def heard(spread: str, number: int) -> Sequence[str]:
    return {ONE: TEAMS[:1], EACH_ONE: (TEAMS[number % PARTITIONS],), EACH_ALL: TEAMS}[spread]


def one_in(draft: Draft, spread: str) -> Draft:
    return replace(draft, partitions=TEAMS[:1]) if spread == ONE else draft


def _broadcast(rig: Rig, wire: MemoryWire) -> Broadcast:
    return Broadcast(
        rig.log,
        rig.state,
        rig.subscriptions,
        rig.connections,
        wire,
        rig.together,
        Clock(),
        live_events.Renderer(),
        lambda to: live_events.expired(to.dialect, to.project),
        lambda: True,
    )


@dataclass(slots=True)
class _Collecting:
    """A client that keeps what is put, so that a thousand subscriptions take eighty calls and not three thousand."""

    items: list[Any] = field(default_factory=list)

    def get_item(self, **_: Any) -> dict[str, Any]:
        return {}

    def put_item(self, Item: Any, **_: Any) -> None:  # noqa: N803 - boto3's name for it
        self.items.append(Item)

    def batch_write_item(self, RequestItems: Any) -> dict[str, Any]:  # noqa: N803
        self.items += [request["PutRequest"]["Item"] for requests in RequestItems.values() for request in requests]
        return {}


def add_many(rig: Rig, subscriptions: Sequence[Subscription]) -> None:
    """The rows that `add` writes, in as few calls as possible."""
    collecting = _Collecting()
    adding = DynamoSubscriptions(cast("Any", collecting), rig.tables.connections, in_turn, Clock())
    for one in subscriptions:
        adding.add(one)
    put_all(rig.tables.client, rig.tables.connections, collecting.items, rig.together)


def fan_out_rows(rig: Rig) -> list[dict[str, Any]]:
    return [
        fan_out(rig, spread, subscribers, events).row(spread)
        for spread in SPREADS
        for subscribers in SUBSCRIBERS
        for events in EVENTS
    ]


def backlog(rig: Rig, per_page: int) -> Run:
    """A thousand events in pages of some size behind the cursor, and one subscriber who hears them all."""
    ledger = rig.ledger()
    add_many(rig, [subscription(ledger, TEAMS[:1])])
    rig.fill(ledger, [one_in(draft, ONE) for draft in drafts("realistic", BACKLOG, next(_SEEDS))], per_page)
    wire = CountingWire()
    with rig.tally.measured() as counts:
        assert _broadcast(rig, wire)(ledger)
    return Run(counts, BACKLOG, 1, wire.posts)


def backlog_rows(rig: Rig) -> list[dict[str, Any]]:
    rows = []
    for per_page in (1, 25, 100):
        run = backlog(rig, per_page)
        rows.append(
            {
                "events": run.events,
                "a page": per_page,
                **run.cost,
                "read units, log": run.counts.read_units("log"),
                "cursor moved": run.counts.write_units("state"),
            }
        )
    return rows


def messages(rig: Rig) -> dict[str, Counts]:
    """A connection's life, message by message, through the use case that handles them; only the wire is in memory."""
    clock, wire, id_ = Clock(), CountingWire(), "L0SM9cOFvHcCmsgs"
    project = rig.ledger().name.rsplit("#", 1)[-1]
    converse = _converse(rig, wire, clock, project)

    def say(kind: str, **payload: Any) -> None:
        converse(id_, to_text({"type": kind, "protocol_version": PROTOCOL, "payload": payload}))
        assert '"type":"error"' not in wire.sent[id_][-1], wire.sent[id_][-1]

    def later() -> None:
        clock.now += 1_000
        say("heartbeat")

    def leave() -> None:
        rig.subscriptions.remove(id_)
        rig.connections.remove(id_)

    connect = partial(say, "connect", token="t", client_id=IDENTITY.client_id)
    sync = partial(say, "sync", since_committed_id=0)
    steps: dict[str, Callable[[], None]] = {
        "$connect": lambda: rig.connections.open(id_, clock()),
        "connect": connect,
        "heartbeat, first message of a second": later,
        "heartbeat, same second": lambda: say("heartbeat"),
        "sync of an empty project, one partition": lambda: sync(partitions=TEAMS[:1]),
        "the same again": lambda: sync(partitions=TEAMS[:1]),
        "sync of an empty project, ten partitions": lambda: sync(partitions=TEAMS),
        "submit_events, one event, cold": lambda: say("submit_events", events=items("realistic", 1, next(_SEEDS))),
        "submit_events, one event, warm": lambda: say("submit_events", events=items("realistic", 1, next(_SEEDS))),
        "$disconnect": leave,
    }
    counted: dict[str, Counts] = {}
    for name, step in steps.items():
        with rig.tally.measured() as counts:
            step()
        counted[name] = counts
    return counted


def _converse(rig: Rig, wire: MemoryWire, clock: Clock, project: str) -> Converse:
    identity = replace(IDENTITY, projects=frozenset({project}), expires_ms=clock() + HOUR_MS)
    heads, commit = Heads(clock), rig.writer().commit
    answers = Answers(
        lambda token: identity,
        Submit(commit, clock, lambda *_: "open"),
        Sync(rig.log, rig.state, rig.index, heads, rig.together),
        Subscribe(SendSnapshot(rig.log, rig.state, rig.subscriptions, MemoryHandovers(), rig.together, clock), heads),
        rig.subscriptions,
        wire,
        clock,
        lambda: "s",
    )
    take_turn = TakeTurn(rig.connections, clock, lambda ms: None)
    return Converse(rig.connections, rig.subscriptions, wire, answers, clock, take_turn)


def subscribing(rig: Rig, partitions: int) -> Counts:
    """A connection's first subscription, by itself."""
    one = subscription(rig.ledger(), TEAMS[:partitions])
    with rig.tally.measured() as counts:
        rig.subscriptions.add(one)
    return counts


def message_rows(rig: Rig) -> list[dict[str, Any]]:
    counted = messages(rig)
    for partitions in (1, 10):
        counted[f"the subscription alone, partitions: {partitions}"] = subscribing(rig, partitions)
    return [
        {
            "what": name,
            "calls": counts.calls_to(*TABLES),
            "of them to Connections": counts.calls_to("connections"),
            "write units": counts.write_units(*TABLES),
            "read units": counts.read_units(*TABLES),
            "round trips": counts.rounds,
        }
        for name, counts in counted.items()
    ]


def held(rig: Rig) -> list[Figure]:
    figures = []
    for spread in SPREADS:
        alone = fan_out(rig, spread, 10, 25).cost
        beside = fan_out(rig, spread, 10, 25, BYSTANDERS).cost
        name = f"fan-out of 25 events to 10 subscribers, {spread}: the same beside {BYSTANDERS:,} who listen elsewhere"
        figures.append(exactly(name, _said(alone), _said(beside)))
    one = fan_out(rig, ONE, 1, 1)
    figures.append(
        exactly("fan-out of one event to one subscriber", "5 calls, 1 write unit", _calls_writes(one.counts))
    )
    said = messages(rig)
    for name, wanted in MESSAGES.items():
        figures.append(exactly(name, wanted, _calls_writes(said[name])))
    for partitions, wanted in SUBSCRIBING.items():
        name = f"subscribing to {partitions} partition{'s' * (partitions > 1)}"
        figures.append(exactly(name, wanted, _calls_writes(subscribing(rig, partitions))))
    return figures


MESSAGES = {
    "heartbeat, same second": "2 calls, 2 write units",
    "heartbeat, first message of a second": "2 calls, 2 write units",
    "submit_events, one event, warm": "4 calls, 4 write units",
}
SUBSCRIBING = {1: "3 calls, 2 write units", 10: "3 calls, 11 write units"}


def _said(cost: dict[str, int]) -> str:
    return ", ".join(f"{value} {name}" for name, value in cost.items())


def _calls_writes(counts: Counts) -> str:
    units = counts.write_units(*TABLES)
    return f"{counts.calls_to(*TABLES)} calls, {units} write unit{'s' * (units != 1)}"
