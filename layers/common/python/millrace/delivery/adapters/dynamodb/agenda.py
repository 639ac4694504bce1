"""Which ledgers a target is to visit, and when, in DynamoDB."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millrace.delivery.adapters.dynamodb import keys
from millrace.delivery.adapters.dynamodb.runs import Runs
from millrace.delivery.domain.targets import Target


@dataclass(frozen=True, slots=True)
class DynamoAgenda:
    runs: Runs

    def note(self, target: Target, ledgers: Iterable[str]) -> None:
        self.runs.store([keys.key(keys.agenda(target.id), keys.visit(0, ledger)) for ledger in ledgers])

    def has_due(self, target: Target, now_ms: int) -> bool:
        asked = self.runs.between(keys.agenda(target.id), keys.moment(0), keys.moment(now_ms + 1))
        return next(self.runs.items(asked, 1), None) is not None
