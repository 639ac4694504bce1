"""The time index in DynamoDB, in the table of the partition index: rows by width and last instant, notes by bucket."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.adapters.dynamodb.batch import Item, delete_all, put_all
from millrace.ledger.domain.names import Ledger, join_key
from millrace.ledger.ports import Together
from millrace.realtime.domain.time_index import BucketNote, LateEvents, TimeHit, TimeRow
from millrace.realtime.domain.time_order import Place
from millrace.realtime.ports import TimeRows

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SECOND = 1_000_000_000
LONG_AGO = 10**12
"""Seconds that are added to an instant in a key: so none is negative, and keys sort as instants do."""
_HIT = struct.Struct("<qIQQIH")
"""Seconds, nanoseconds, position, page, bytes of the body, bytes of the id that follows."""
_LATE = struct.Struct("<qIQH")


@dataclass(frozen=True, slots=True)
class DynamoTimes:
    client: DynamoDBClient
    table: str
    together: Together

    def note(self, session: Ledger) -> BucketNote | None:
        items = self._query(
            _notes_key(session), "s >= :from", {":from": {"S": _bucket(0)}}, ScanIndexForward=False, Limit=1
        )
        return _note(items["Items"][0]) if items["Items"] else None

    def notes(self, session: Ledger, bucket: int) -> Iterable[BucketNote]:
        after: dict[str, Any] = {}
        while True:
            answer = self._query(_notes_key(session), "s >= :from", {":from": {"S": _bucket(bucket)}}, **after)
            yield from map(_note, answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            after = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def write(self, session: Ledger, rows: Sequence[TimeRow], note: BucketNote) -> None:
        items = [_key(session, row) | {"h": {"B": b"".join(map(_pack, row.hits))}} for row in rows]
        put_all(self.client, self.table, items, self.together)
        put_all(self.client, self.table, [_note_item(session, note)], self.together)

    def read(self, session: Ledger, width: int, since: int, after: TimeRow | None, limit: int) -> TimeRows:
        start = _instant(since) if after is None else _sort_key(after) + "~"
        answer = self._query(_rows_key(session, width), "s >= :from", {":from": {"S": start}}, Limit=limit)
        rows = [TimeRow(list(_unpack(item["h"]["B"]))) for item in answer["Items"]]
        return TimeRows(rows, more="LastEvaluatedKey" in answer)

    def forget(self, session: Ledger, rows: Sequence[TimeRow]) -> None:
        delete_all(self.client, self.table, [_key(session, row) for row in rows], self.together)

    def _query(self, partition: str, condition: str, values: dict[str, Any], **how: Any) -> Any:
        with translated():
            return self.client.query(
                TableName=self.table,
                KeyConditionExpression=f"p = :p AND {condition}",
                ExpressionAttributeValues={":p": {"S": partition}, **values},
                ConsistentRead=True,
                **how,
            )


def _rows_key(session: Ledger, width: int) -> str:
    return f"{session.name}#{join_key('times', str(width))}"


def _notes_key(session: Ledger) -> str:
    return f"{session.name}#{join_key('notes')}"


def _key(session: Ledger, row: TimeRow) -> dict[str, Any]:
    """Two rows with the same key end alike and hold as many events. If some of them were pruned before the later one
    was written, it reaches further back, so nothing that is retained is overwritten."""
    return {
        "p": {"S": _rows_key(session, row.width)},
        "s": {"S": _sort_key(row)},
    }


def _sort_key(row: TimeRow) -> str:
    return f"{_instant(row.last.place[0])}.{row.last.position:016d}.{len(row.hits):04d}"


def _instant(nanoseconds: int) -> str:
    return f"{nanoseconds + LONG_AGO * SECOND:022d}"


def _bucket(bucket: int) -> str:
    return f"{bucket:012d}"


def _note_item(session: Ledger, note: BucketNote) -> dict[str, Any]:
    item: dict[str, Any] = {
        "p": {"S": _notes_key(session)},
        "s": {"S": _bucket(note.bucket)},
        "w": {"S": ",".join(map(str, sorted(note.widths)))},
    }
    if note.latest is not None:
        item["m"] = {"B": _pack_late(note.latest, 0)}
    if note.late.count:
        edges = _pack_late(note.late.first, 0) + _pack_late(note.late.last, 0)
        named = b"".join(_pack_late(place, position) for place, position in note.late.hits)
        item |= {"n": {"N": str(note.late.count)}, "l": {"B": edges + named}}
    return item


def _note(item: Item) -> BucketNote:
    widths = frozenset(int(width) for width in item["w"]["S"].split(",") if width)
    latest = next(_unpack_late(item["m"]["B"]))[0] if "m" in item else None
    late = LateEvents()
    if "n" in item:
        (first, _), (last, _), *named = _unpack_late(item["l"]["B"])
        late = LateEvents(int(item["n"]["N"]), first, last, tuple(named))
    return BucketNote(int(item["s"]["S"]), widths, latest, late)


def _pack(hit: TimeHit) -> bytes:
    id_ = hit.place[1].encode()
    return _HIT.pack(*divmod(hit.place[0], SECOND), hit.position, hit.page, hit.size, len(id_)) + id_


def _unpack(packed: bytes) -> Iterable[TimeHit]:
    at = 0
    while at < len(packed):
        seconds, rest, position, page, size, length = _HIT.unpack_from(packed, at)
        at += _HIT.size
        yield TimeHit((seconds * SECOND + rest, packed[at : at + length].decode()), position, page, size)
        at += length


def _pack_late(place: Place, position: int) -> bytes:
    id_ = place[1].encode()
    return _LATE.pack(*divmod(place[0], SECOND), position, len(id_)) + id_


def _unpack_late(packed: bytes) -> Any:
    at = 0
    while at < len(packed):
        seconds, rest, position, length = _LATE.unpack_from(packed, at)
        at += _LATE.size
        yield (seconds * SECOND + rest, packed[at : at + length].decode()), position
        at += length
