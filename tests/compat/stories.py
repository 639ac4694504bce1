"""What a hub stores, a little of each form: written by today's writers, and read by today's readers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from millrace.delivery.adapters.dynamodb.directory import DynamoDirectory, DynamoTargetStates
from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.domain.sources import Source
from millrace.lake.adapters.dynamodb.lanes import DynamoLanes
from millrace.lake.ports.lanes import Lane, Reservation
from millrace.ledger.adapters.dynamodb.claims import DynamoClaims
from millrace.ledger.adapters.dynamodb.log import DynamoLog
from millrace.ledger.adapters.dynamodb.rounds import DynamoRounds
from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.canonical import DIGEST_BYTES
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Origin, Page, Part, Record
from millrace.live.adapters.dynamodb.connections import DynamoConnections
from millrace.live.adapters.dynamodb.subscriptions import DynamoSubscriptions
from millrace.live.ports import Connection, Cycle, Subscription
from millrace.streams.adapters.dynamodb.runtimes import DynamoRuntimes
from millrace.streams.domain.grant import BreakGlassGrant
from millrace.streams.domain.negotiate import negotiate
from millrace.sync.adapters.dynamodb import DynamoIndex
from millrace.sync.adapters.profiles import DynamoProfiles
from millrace.sync.ports import Hit, IndexRow
from tests.compat import rooms
from tests.support.aws_tables import AwsTables

NOW_MS = 1_800_000_000_000
LEDGER = Ledger.of("sync", "acme", "demo")
DIGEST = bytes(range(DIGEST_BYTES))


def _record(number: int, body: bytes | None) -> Record:
    return Record(f"e{number}", DIGEST, body, ("orders", f"p{number % 3}"))


PAGES = (
    Page(1, (_record(1, b'{"event":{"type":"t"}}'),), NOW_MS, Origin("C1", "socket-1"), b"nonce-1"),
    Page(2, tuple(_record(n, b'{"event":"' + b"x" * 200 + b'"}') for n in range(2, 27)), NOW_MS, Origin("C1"), b"n2"),
    Page(27, (_record(27, None), _record(28, b"{}")), NOW_MS + 1, Origin("C2"), b"nonce-3", revision=1),
    Page(
        29,
        (_record(29, b"{}"), _record(30, b"{}")),
        NOW_MS + 2,
        Origin("C2"),
        b"nonce-4",
        parts=(Part(1, Origin("C2", "s"), b"a"), Part(1, Origin("C3"), b"b")),
    ),
    Page(31, (_record(31, b"{}"),), NOW_MS + 3, Origin("C1", trace=rooms.TRACE), b"nonce-5"),
    Page(
        32,
        (_record(32, b"{}"), _record(33, b"{}")),
        NOW_MS + 4,
        Origin("C2"),
        b"nonce-6",
        parts=(Part(1, Origin("C2", "s"), b"c"), Part(1, Origin("C3", trace=rooms.TRACE), b"d")),
    ),
)
ROWS = (IndexRow("orders", 1, 26, [Hit(1, 1), Hit(2, 2)]), IndexRow("orders", 27, 30, [Hit(28, 27)]))
SUBSCRIPTION = Subscription("socket-1", "sub-1", LEDGER.name, ("orders",), "sync", "demo", NOW_MS + 9, 4)
IDENTITY = Identity("C1", "acme", frozenset({"demo"}), ("*",), frozenset({"producer"}), "acme", NOW_MS + 9)
CONNECTION = Connection("socket-1", "sync", IDENTITY, "demo", NOW_MS + 9, Cycle(("orders",), 3, 9), 1, 2)
TARGET = HubTarget(
    tenant="acme",
    id="hook",
    kind="external",
    url="https://example.com/hook",
    webhook=True,
    sources=(Source("sync", "*"),),
    prefixes=frozenset({"order."}),
    start_now=False,
    paused=False,
    created_ms=NOW_MS,
    revision=1,
    sealed=b"sealed",
    max_per_second=5.0,
)
CIRCUIT = Circuit(3, NOW_MS + 60_000)
RESERVATION = Reservation("ledger/one.jsonl.gz", {LEDGER.name: (1, 26)}, 26)
NEGOTIATED = negotiate({"supported_contract_versions": [2], "requested_capabilities": []})
GRANT = BreakGlassGrant(
    id="grant-1",
    runtime_id="runtime",
    who="C1",
    reason="why",
    streams=("stream",),
    fields=None,
    created_ms=NOW_MS,
    expires_ms=NOW_MS + 60_000,
    salt="c2FsdA==",
)


def write(tables: AwsTables) -> None:
    """The same rows whenever it runs."""
    client = tables.client
    log, state = DynamoLog(client, tables.log, in_turn), DynamoState(client, tables.state)
    for page in PAGES:
        assert log.append(LEDGER, page) is None
    DynamoClaims(client, tables.claims, in_turn).create(LEDGER, ["e1"], 0)
    state.register(LEDGER)
    state.move_cursor(LEDGER, "index", 0, 26)
    state.move_cursor(LEDGER, "fan_out", 0, 30, 2_000_000)
    state.raise_floor(LEDGER, 28)
    rounds = DynamoRounds(client, tables.state, tables.waiting)
    rounds.note(LEDGER, 2_000_000)
    rounds.keep_place("grown", "2000000|")
    DynamoIndex(client, tables.index, in_turn).write(LEDGER, ROWS)
    DynamoSubscriptions(client, tables.connections, in_turn, lambda: NOW_MS).add(SUBSCRIPTION)
    connections = DynamoConnections(client, tables.connections)
    connections.open("socket-1", NOW_MS)
    connections.end_turn(connections.line_up("socket-1", "sync", NOW_MS), CONNECTION, NOW_MS)
    directory = DynamoDirectory(client, tables.delivery)
    assert directory.put(TARGET, None)
    gone = replace(TARGET, id="gone")
    assert directory.put(gone, None)
    assert directory.remove("acme", "gone")
    DynamoTargetStates(directory).fare(TARGET.key, CIRCUIT, "")
    assert DynamoLanes(client, tables.state).store(0, Lane(1, RESERVATION))
    runtimes = DynamoRuntimes(client, tables.state, in_turn, lambda: NOW_MS)
    runtimes.negotiate("acme", "runtime", "C1", NEGOTIATED)
    runtimes.put_grant("acme", GRANT)
    rooms.write(tables)
    DynamoProfiles(client, tables.state).put("acme", "demo", "canonical")


def read(tables: AwsTables) -> dict[str, Any]:
    """All of it, through the readers that the functions use."""
    client = tables.client
    rounds = DynamoRounds(client, tables.state, tables.waiting)
    runtimes = DynamoRuntimes(client, tables.state, in_turn, lambda: NOW_MS)
    state = DynamoState(client, tables.state)
    kept = DynamoDirectory(client, tables.delivery).get("acme", "hook")
    assert kept is not None
    turn = DynamoConnections(client, tables.connections).line_up("socket-1", "sync", NOW_MS)
    subscriptions = DynamoSubscriptions(client, tables.connections, in_turn, lambda: NOW_MS)
    return {
        "pages": tuple(DynamoLog(client, tables.log, in_turn).read(LEDGER, 0).pages),
        "claims": DynamoClaims(client, tables.claims, in_turn).get(LEDGER, ["e1"]),
        "registry": (list(state.ledgers()), rounds.registered("", 5)),
        "marks": state.marks(LEDGER),
        "notes": (rounds.noted(2_000_000, "", 5), rounds.kept_place("grown")),
        "index": tuple(DynamoIndex(client, tables.index, in_turn).read(LEDGER, "orders", 0, 9).rows),
        "subscriptions": list(subscriptions.find(LEDGER, {"orders"})),
        "connection": turn.connection,
        "target": (kept.target, kept.state.circuit),
        "former": list(DynamoDirectory(client, tables.delivery).former("acme")),
        "lane": DynamoLanes(client, tables.state).load(0),
        "negotiated": runtimes.session("acme", "runtime", "C1"),
        "grants": list(runtimes.grants("acme", "runtime")),
        "rooms": rooms.read(tables),
        "profiles": DynamoProfiles(client, tables.state).page("acme", "", 5),
    }
