"""Count what a DynamoDB client does: calls, units and round trips, per table."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millrace.ledger.ports import Together
from tests.bench.sizes import item_size, read_units, value_size, write_units

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

COMMIT_PATH = ("claims", "log")
PARAMS = "millrace-bench-params"


@dataclass(slots=True)
class Counts:
    """What happened between two moments. Keys are the names of tables, or table and operation."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    rounds: int = 0

    def calls_to(self, *tables: str) -> int:
        return sum(count for (table, _), count in self.calls.items() if table in tables)

    def write_units(self, *tables: str) -> int:
        return sum(self.writes[table] for table in tables)

    def read_units(self, *tables: str) -> int:
        return sum(self.reads[table] for table in tables)

    def minus(self, earlier: Counts) -> Counts:
        return Counts(
            self.calls - earlier.calls,
            self.writes - earlier.writes,
            self.reads - earlier.reads,
            self.lost - earlier.lost,
            self.rounds - earlier.rounds,
        )

    def copy(self) -> Counts:
        return Counts(self.calls.copy(), self.writes.copy(), self.reads.copy(), self.lost.copy(), self.rounds)


class _Rounds(threading.local):
    spent = 0


@dataclass(slots=True)
class Tally:
    """Write units are those reported, and checked against the size rules. Two things go by the rules alone: a lost
    conditional write, which is billed but not reported; and reads, where the emulator reports one unit or none."""

    roles: Mapping[str, str]
    """Table name → what the table is for."""
    counts: Counts = field(default_factory=Counts)
    checked: int = 0
    """How many writes had their reported units compared with the size rules."""
    differing: list[str] = field(default_factory=list)
    rounds: _Rounds = field(default_factory=_Rounds)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def attach(self, client: DynamoDBClient) -> None:
        client.meta.events.register("before-parameter-build.dynamodb.*", self._ask)
        client.meta.events.register("before-call.dynamodb.*", self._sent)
        client.meta.events.register("after-call.dynamodb.*", self._answered)

    @contextmanager
    def measured(self) -> Iterator[Counts]:
        """Filled when the block ends. Round trips are those of the calling thread."""
        result = Counts()
        before, spent = self.counts.copy(), self.rounds.spent
        yield result
        after = self.counts.minus(before)
        result.calls, result.writes, result.reads, result.lost = after.calls, after.writes, after.reads, after.lost
        result.rounds = self.rounds.spent - spent

    def _ask(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"
        context[PARAMS] = params

    def _sent(self, **_: Any) -> None:
        self.rounds.spent += 1

    def _answered(self, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        operation, params = model.name, context[PARAMS]
        reported = parsed.get("ConsumedCapacity", [])
        units = reported if isinstance(reported, list) else [reported]
        with self.lock:
            for table in {self.roles[name] for name in _tables(params)}:
                self.counts.calls[table, operation] += 1
            if parsed.get("Error", {}).get("Code") == "ConditionalCheckFailedException":
                table = self.roles[params["TableName"]]
                self.counts.lost[table] += 1
                self.counts.writes[table] += _lost_units(params, parsed)
                return
            if operation in READ_RULES:
                self.counts.reads[self.roles[_tables(params)[0]]] += READ_RULES[operation](params, parsed)
                return
            for one in units:
                self.counts.writes[self.roles[one["TableName"]]] += int(one["CapacityUnits"])
            if operation in WRITE_RULES:
                self._check(operation, WRITE_RULES[operation](params), sum(one["CapacityUnits"] for one in units))

    def _check(self, operation: str, expected: int, reported: float) -> None:
        self.checked += 1
        if expected != reported:
            self.differing.append(f"{operation}: {reported} units reported, {expected} by the size rules")


@dataclass(frozen=True, slots=True)
class CountedTogether:
    """`Together` whose calls count as one round trip: the longest chain among them."""

    inner: Together
    rounds: _Rounds

    def __call__(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        chains: list[int] = []

        def counted(call: Callable[[], Any]) -> Any:
            outer, self.rounds.spent = self.rounds.spent, 0
            try:
                return call()
            finally:
                chains.append(self.rounds.spent)
                self.rounds.spent = outer

        try:
            return self.inner([lambda call=call: counted(call) for call in calls])  # type: ignore[misc]
        finally:
            self.rounds.spent += max(chains, default=0)


def _tables(params: Mapping[str, Any]) -> list[str]:
    if "TableName" in params:
        return [params["TableName"]]
    if "RequestItems" in params:
        return list(params["RequestItems"])
    if "TransactItems" in params:
        return [action["TableName"] for member in params["TransactItems"] for action in member.values()]
    return [params["Statements"][0]["Statement"].split('"')[1]]


def _lost_units(params: Mapping[str, Any], parsed: Mapping[str, Any]) -> int:
    """By the larger of what was to be written and what was there; only claims, far below 1 KB, are not handed back."""
    return max(write_units(item_size(params.get("Item", {}))), write_units(item_size(parsed.get("Item", {}))))


def _inserted(statement: Mapping[str, Any]) -> int:
    """A claim: three attributes with names of one letter."""
    return write_units(3 + sum(map(value_size, statement["Parameters"])))


def _got(params: Mapping[str, Any], parsed: Mapping[str, Any]) -> int:
    """Each item on its own; an absent one costs a unit too."""
    found = [item for items in parsed["Responses"].values() for item in items]
    asked = sum(len(request["Keys"]) for request in params["RequestItems"].values())
    return sum(read_units(item_size(item)) for item in found) + asked - len(found)


WRITE_RULES: Mapping[str, Callable[[Mapping[str, Any]], int]] = {
    "PutItem": lambda params: write_units(item_size(params["Item"])),
    "BatchExecuteStatement": lambda params: sum(map(_inserted, params["Statements"])),
    "BatchWriteItem": lambda params: sum(
        write_units(item_size(request["PutRequest"]["Item"])) if "PutRequest" in request else 1
        for requests in params["RequestItems"].values()
        for request in requests
    ),
}
READ_RULES: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], int]] = {
    "Query": lambda _, parsed: read_units(sum(map(item_size, parsed["Items"]))),
    "GetItem": lambda _, parsed: read_units(item_size(parsed.get("Item", {}))),
    "BatchGetItem": _got,
}
