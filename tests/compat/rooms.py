"""What single rooms store beside the log: who waits, audiences, places, deliveries, rules, checkpoints, markers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from millrace.delivery.adapters.dynamodb.drains import DynamoDrains, DynamoLine
from millrace.delivery.adapters.dynamodb.positions import DynamoPositions
from millrace.delivery.adapters.dynamodb.runs import Runs
from millrace.delivery.domain.drains import DrainLease, WaitingTarget
from millrace.delivery.domain.ranges import Range
from millrace.delivery.domain.states import Attempt, Delivery, Status
from millrace.delivery.domain.targets import Target
from millrace.lake.adapters.dynamodb.policies import DynamoPolicies
from millrace.lake.domain.retention_rules import Change, Scope
from millrace.ledger.adapters.dynamodb.meter import DynamoMeter
from millrace.ledger.adapters.dynamodb.room import DynamoBoard, DynamoRoom
from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.domain.canonical import DIGEST_BYTES
from millrace.ledger.domain.names import Ledger, realtime_ledger, stream_ledger
from millrace.ledger.domain.page import Draft, Origin
from millrace.ledger.domain.waiting import Waiting
from millrace.live.adapters.dynamodb.connections import DynamoConnections
from millrace.live.adapters.dynamodb.places import DynamoPlaces
from millrace.live.adapters.dynamodb.shards import DynamoShards
from millrace.live.domain.shards import Shard
from millrace.live.ports import ShardProgress
from millrace.realtime.adapters.dynamodb import DynamoRealtime
from millrace.realtime.adapters.time_index import DynamoTimes
from millrace.realtime.domain.time_index import BucketNote, LateEvents, TimeHit, TimeRow
from millrace.realtime.ports import Watermark
from millrace.streams.adapters.dynamodb.rows import DynamoRows
from millrace.streams.ports import Announcement, Intent, VersionedRow
from millrace.sync.adapters.profiles import DynamoProfiles
from tests.contract.conftest import SelectByQueries
from tests.support.aws_tables import AwsTables

NOW_MS = 1_800_000_000_000
LEDGER, CROWD = Ledger.of("sync", "acme", "busy"), Ledger.of("sync", "acme", "crowd")
SESSION, STREAM = realtime_ledger("acme", "call-1"), stream_ledger("acme", "runtime", "stream")
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
DIGEST = bytes(range(DIGEST_BYTES))
WAITING = Waiting(
    b"nonce-w", (Draft("w1", DIGEST, b"{}", ("p",)),), 7, Origin("C1", "s", TRACE), True, NOW_MS, NOW_MS + 9
)
SHARD = Shard(1, 4)
PROGRESS = ShardProgress(12, NOW_MS + 30_000, 250)
RULE = Change("orders", 5, 30, 1_000)
SCOPE = Scope("acme", "sync", "busy")
TARGET = Target("acme#hook", "external")
DELIVERY = Delivery(
    Status.TRANSIENT, 2, NOW_MS, NOW_MS + 1, NOW_MS + 9, "why", (Attempt(NOW_MS, Status.TRANSIENT, "w"),), NOW_MS - 1
)
RUN = Range(3, 5, DELIVERY)
DRAIN = DrainLease("acme", "hook", "holder", NOW_MS, NOW_MS + 9_000, slow=True)
IN_LINE = WaitingTarget("acme", "hook", NOW_MS, slow=True)
CHECKPOINT = Watermark("2026-01-02T03:04:05Z", 1_767_323_045, "e9", 9)
TIMES = TimeRow([TimeHit((5, "a"), 1, 1, 10), TimeHit((6, "b"), 2, 1, 11)])
NOTE = BucketNote(0, frozenset({0}), (6, "b"), LateEvents(1, (5, "a"), (5, "a"), (((5, "a"), 1),)))
MARKER = VersionedRow(2, {"label": "x"}, "n2", Announcement(STREAM, Draft("marker-m-2", DIGEST, b"{}"), "C1"), ("n1",))
INTENT = Intent("markers", "m", "n2")


def write(tables: AwsTables) -> None:
    client = tables.client
    DynamoRoom(client, tables.waiting, in_turn).leave(LEDGER, WAITING)
    assert DynamoBoard(client, tables.waiting).take(LEDGER, b"leader", NOW_MS, NOW_MS + 150)
    shards = _shards(tables)
    assert shards.split(CROWD, 1, SHARD.count)
    assert shards.take(CROWD, SHARD, "me", NOW_MS, NOW_MS + 30_000) is not None
    assert shards.move(CROWD, SHARD, "me", PROGRESS)
    places = DynamoPlaces(client, tables.connections, lambda: NOW_MS)
    DynamoConnections(client, tables.connections).open("socket-9", NOW_MS)
    assert places.of_connection("acme", "socket-9") == 1
    assert places.of_subscription("acme", "socket-9", "sub-1") == 1
    DynamoProfiles(client, tables.state).put("acme", "busy", "canonical")
    assert DynamoPolicies(client, tables.state).change(SCOPE, RULE)
    runs, positions = _deliveries(tables)
    positions.begin_at(TARGET, LEDGER.name, 2)
    assert positions.move(TARGET, LEDGER.name, 2, 5, 1)
    assert runs.put_fresh(TARGET.id, LEDGER.name, [RUN])
    runs.point(TARGET.id, LEDGER.name, [RUN], NOW_MS)
    DynamoDrains(client, tables.delivery).take(DRAIN, NOW_MS)
    DynamoLine(client, tables.delivery).wait(IN_LINE)
    realtime = DynamoRealtime(client, tables.state, in_turn)
    realtime.add("acme", {"invalid": 2, "deduped": 3})
    assert realtime.move(SESSION, "consumer", CHECKPOINT)
    DynamoTimes(client, tables.index, in_turn).write(SESSION, [TIMES], NOTE)
    rows = DynamoRows(client, tables.state)
    assert rows.restore("markers", "m", MARKER)
    rows.leave(INTENT, NOW_MS)
    DynamoMeter(client, tables.state).add("acme", 10, 500, 900)


def read(tables: AwsTables) -> dict[str, Any]:
    client = tables.client
    selecting: Any = SelectByQueries(client)
    board = DynamoBoard(client, tables.waiting).read(LEDGER)
    runs, positions = _deliveries(tables)
    times, rows = DynamoTimes(client, tables.index, in_turn), DynamoRows(client, tables.state)
    realtime = DynamoRealtime(client, tables.state, in_turn)
    marker = rows.get("markers", "m")
    assert marker is not None
    return {
        "waiting": list(DynamoRoom(selecting, tables.waiting, in_turn).look(LEDGER)),
        "board": (board.leader, board.until_ms),
        "shards": _shards(tables).progress(CROWD, SHARD.count, 0, SHARD.count - 1),
        "places": DynamoPlaces(client, tables.connections, lambda: NOW_MS).of_subscription("acme", "socket-9", "sub-1"),
        "profile": DynamoProfiles(client, tables.state).get("acme", "busy"),
        "rules": DynamoPolicies(client, tables.state).get(SCOPE),
        "positions": positions.of(TARGET, [LEDGER.name]),
        "runs": [row.run for row in runs.overlapping(TARGET.id, LEDGER.name, 1, 9)],
        "lowest open": positions.lowest_open(TARGET, LEDGER.name),
        "drains": list(DynamoDrains(client, tables.delivery).of("acme")),
        "line": list(DynamoLine(client, tables.delivery).waiting("acme")),
        "counters": realtime.read("acme"),
        "checkpoint": realtime.get(SESSION, "consumer"),
        "times": (times.note(SESSION), list(times.read(SESSION, 0, 0, None, 9).rows)),
        "marker": (replace(marker, content=MARKER.content), marker.content["label"]),
        "intents": list(rows.left_before(NOW_MS + 1)),
        "rate": DynamoMeter(client, tables.state).add("acme", 10, 5, 511),
    }


def _shards(tables: AwsTables) -> DynamoShards:
    return DynamoShards(tables.client, tables.state, tables.connections, lambda: NOW_MS)


def _deliveries(tables: AwsTables) -> tuple[Runs, DynamoPositions]:
    runs = Runs(tables.client, tables.delivery, in_turn)
    return runs, DynamoPositions(runs, DynamoState(tables.client, tables.state))
