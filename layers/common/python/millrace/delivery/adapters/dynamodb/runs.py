"""Runs of deliveries as rows, and the pointers by which what is not delivered is found again.

A row is the truth; a pointer leads to it. A pointer is written before its row and removed after it, so a process that
dies in between leaves at worst a pointer to nothing, which is passed over, and later swept away.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from millrace.delivery.adapters.dynamodb import keys
from millrace.delivery.domain.ranges import Range
from millrace.delivery.domain.rows import Cut, Row, apart, delivered_within, is_open
from millrace.delivery.domain.states import Attempt, Delivery, Status
from millrace.ledger.adapters.aws_errors import applied, refusals, translated
from millrace.ledger.adapters.dynamodb.batch import GET_KEYS, get_all
from millrace.ledger.adapters.dynamodb.readable import reading
from millrace.ledger.ports import Together

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from mypy_boto3_dynamodb import DynamoDBClient

ABANDONED_MS = 600_000
"""A pointer whose row is not there after so long was left by a process that died."""
NONE = {"S": "[]"}
AT_ONCE = 90
"""Rows in one transaction, which takes 100."""


@dataclass(frozen=True, slots=True)
class Pointer:
    sort: str
    ledger: str
    last: int
    made_ms: int


@dataclass(frozen=True, slots=True)
class Runs:
    client: DynamoDBClient
    table: str
    together: Together
    sweeps: bool = True
    """Whether it removes pointers that a dead process left; who may only read does not."""

    def overlapping(self, target: str, ledger: str, low: int, high: int) -> list[Row]:
        """Rows with a position in `low`..`high`, in order."""
        found: list[Row] = []
        asked = self.between(keys.rows(target), keys.row(ledger, low), keys.row(ledger, 10**20 - 1))
        for item in self.items(asked, limit=64):
            row = row_of(item)
            if row.run.first > high:
                break
            found.append(row)
        return list(apart(found))

    def put_fresh(self, target: str, ledger: str, runs: Sequence[Range]) -> bool:
        """False if one of them is there already, in another state."""
        return all(self.together([partial(self._put_fresh, target, ledger, run) for run in runs])) if runs else True

    def _put_fresh(self, target: str, ledger: str, run: Range) -> bool:
        return applied(
            lambda: self.client.put_item(
                TableName=self.table,
                Item=_item(target, ledger, Row(run, 1)),
                ConditionExpression="attribute_not_exists(p)",
            )
        )

    def cut(self, target: str, ledger: str, cut: Cut, cursor: int) -> bool:
        """Put the runs in place of the old row, and count what that delivers behind the cursor, less what it takes
        back; False if the row has changed. Many runs go in parts; after each, every position has the old delivery or
        the new one."""
        row, left = cut.old, list(cut.runs)
        while left:
            group, left = left[:AT_ONCE], left[AT_ONCE:]
            written = [self._put(target, ledger, Row(run, 1), None) for run in group[:-1]]
            if left:
                written.append(self._put(target, ledger, Row(group[-1], 1), None))
                rest = Row(Range(left[0].first, row.run.last, row.run.delivery), row.version + 1)
            else:
                rest = Row(group[-1], row.version + 1)
            written.append(self._put(target, ledger, rest, row.version))
            span = Range(group[0].first, group[-1].last, row.run.delivery)
            gained = delivered_within(group, 0, cursor) - delivered_within([span], 0, cursor)
            if gained:
                written.append(self._count(target, ledger, gained))
            if not self._together(written):
                return False
            row = rest
        return True

    def _together(self, actions: Sequence[Any]) -> bool:
        with translated():
            try:
                if len(actions) == 1:
                    self.client.put_item(**actions[0]["Put"])
                else:
                    self.client.transact_write_items(TransactItems=actions)
            except refusals() as error:
                if not _lost(error):
                    raise
                return False
        return True

    def _put(self, target: str, ledger: str, row: Row, before: int | None) -> dict[str, Any]:
        put: dict[str, Any] = {"TableName": self.table, "Item": _item(target, ledger, row)}
        if before is None:
            put["ConditionExpression"] = "attribute_not_exists(p)"
        else:
            put["ConditionExpression"] = "n = :before"
            put["ExpressionAttributeValues"] = {":before": {"N": str(before)}}
        return {"Put": put}

    def _count(self, target: str, ledger: str, gained: int) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": self.table,
                "Key": keys.key(keys.cursors(target), ledger),
                "UpdateExpression": "ADD n :gained",
                "ExpressionAttributeValues": {":gained": {"N": str(gained)}},
            }
        }

    def point(self, target: str, ledger: str, runs: Sequence[Range], now_ms: int) -> None:
        """Before the rows: a pointer to each run that is not delivered, and a visit for each time one is due."""
        items = [
            {**keys.key(keys.pointers(target), keys.pointer(ledger, run)), "m": {"N": str(now_ms)}}
            for run in runs
            if not run.delivery.delivered
        ]
        due = {run.delivery.next_ms or 0 for run in runs if is_open(run.delivery)}
        items += [keys.key(keys.agenda(target), keys.visit(when, ledger)) for when in sorted(due)]
        self.store(items)

    def store(self, items: Sequence[Any]) -> None:
        calls = [partial(self._store, item) for item in items]
        if calls:
            self.together(calls)

    def unpoint(self, target: str, ledger: str, cut: Cut) -> None:
        """After the rows: the pointer of the row that is no more. What was delivered had none."""
        if cut.old.run.delivery.delivered:
            return
        kept = {keys.pointer(ledger, run) for run in cut.runs if not run.delivery.delivered}
        self.remove(keys.pointers(target), list({keys.pointer(ledger, cut.old.run)} - kept))

    def remove(self, p: str, sorts: Sequence[str]) -> None:
        calls = [partial(self._remove, keys.key(p, sort)) for sort in sorts]
        if calls:
            self.together(calls)

    def cross_off(self, visits: Sequence[Any]) -> None:
        """Remove visits that were made, unless they have been noted again since they were read."""
        if visits:
            self.together([partial(self._cross_off, visit) for visit in visits])

    def pointed(self, target: str, begin: str, end: str) -> Iterator[list[Pointer]]:
        """Pointers in order, some at a time."""
        items = self.items(self.between(keys.pointers(target), begin, end), GET_KEYS)
        while group := [pointer_of(item) for item in islice(items, GET_KEYS)]:
            yield group

    def follow(self, target: str, pointers: Sequence[Pointer], now_ms: int) -> list[tuple[Pointer, Row]]:
        """The rows that the pointers lead to, in their order. One to nothing is passed over; an old one goes."""
        wanted = dict.fromkeys((one.ledger, one.last) for one in pointers)
        sorts = [keys.key(keys.rows(target), keys.row(ledger, last)) for ledger, last in wanted]
        items = get_all(self.client, self.table, sorts, self.together, tries=6) if sorts else []
        rows = {item["s"]["S"]: row_of(item) for item in items}
        found: dict[tuple[str, int], tuple[Pointer, Row]] = {}
        lost: list[str] = []
        for one in pointers:
            row = rows.get(keys.row(one.ledger, one.last))
            if row is not None and keys.leads_to(one.sort, one.ledger, row.run):
                found.setdefault((one.ledger, one.last), (one, row))
            elif one.made_ms < now_ms - ABANDONED_MS:
                lost.append(one.sort)
        self.remove(keys.pointers(target), lost if self.sweeps else [])
        return list(found.values())

    def items(self, asked: dict[str, Any], limit: int | None = None) -> Iterator[Any]:
        """What a query finds, strongly consistent, read as far as it is looked at."""
        if limit is not None:
            asked["Limit"] = limit
        while True:
            with translated():
                answer = self.client.query(TableName=self.table, ConsistentRead=True, **asked)
            yield from answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def between(self, p: str, begin: str, end: str) -> dict[str, Any]:
        return {
            "KeyConditionExpression": "p = :p AND s BETWEEN :begin AND :end",
            "ExpressionAttributeValues": {":p": {"S": p}, ":begin": {"S": begin}, ":end": {"S": end}},
        }

    def _store(self, item: Any) -> None:
        with translated():
            self.client.put_item(TableName=self.table, Item=item)

    def _cross_off(self, visit: Any) -> None:
        more: Any = {"ConditionExpression": "attribute_not_exists(v)"}
        if "v" in visit:
            more = {"ConditionExpression": "v = :v", "ExpressionAttributeValues": {":v": visit["v"]}}
        key = {"p": visit["p"], "s": visit["s"]}
        applied(lambda: self.client.delete_item(TableName=self.table, Key=key, **more))

    def _remove(self, key: Any) -> None:
        with translated():
            self.client.delete_item(TableName=self.table, Key=key)


def row_of(item: Any) -> Row:
    with reading("deliveries", item["s"]["S"]):
        status, attempts, first_ms, last_ms, next_ms, error, *_ = json.loads(item["d"]["S"])
        earlier = tuple(Attempt(ms, Status(was), why) for ms, was, why, *_ in json.loads(item.get("h", NONE)["S"]))
        delivered_ms = int(item["g"]["N"]) if "g" in item else None
        delivery = Delivery(Status(status), attempts, first_ms, last_ms, next_ms, error, earlier, delivered_ms)
        last = int(item["s"]["S"].rpartition(keys.END)[2])
        return Row(Range(int(item["f"]["N"]), last, delivery), int(item["n"]["N"]))


def _item(target: str, ledger: str, row: Row) -> dict[str, Any]:
    one = row.run.delivery
    stored = [one.status.value, one.attempts, one.first_ms, one.last_ms, one.next_ms, one.error]
    earlier = [[attempt.at_ms, attempt.status.value, attempt.error] for attempt in one.earlier]
    return {
        **keys.key(keys.rows(target), keys.row(ledger, row.run.last)),
        "f": {"N": str(row.run.first)},
        "n": {"N": str(row.version)},
        "d": {"S": json.dumps(stored, ensure_ascii=False, separators=(",", ":"))},
        **({} if one.delivered_ms is None else {"g": {"N": str(one.delivered_ms)}}),
        **({"h": {"S": json.dumps(earlier, ensure_ascii=False, separators=(",", ":"))}} if earlier else {}),
    }


def pointer_of(item: Any) -> Pointer:
    sort = item["s"]["S"]
    with reading("pointer", sort):
        _, ledger, *_, last = sort.split(keys.END)
        return Pointer(sort, ledger, int(last), int(item["m"]["N"]))


def _lost(error: ClientError) -> bool:
    """A condition did not hold, alone or in a transaction, or another transaction was at the same rows."""
    code = error.response.get("Error", {}).get("Code")
    return code in ("ConditionalCheckFailedException", "TransactionCanceledException", "TransactionConflictException")
