"""Which ledgers a target is to visit, and when, in DynamoDB."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from millrace.delivery.adapters.dynamodb import keys
from millrace.delivery.adapters.dynamodb.runs import Runs
from millrace.delivery.domain.targets import Target


@dataclass(frozen=True, slots=True)
class DynamoAgenda:
    runs: Runs

    def note(self, target: Target, ledgers: Iterable[str]) -> None:
        """Each note is told apart from the one before it, which a drain may be about to cross off."""
        visits = [keys.key(keys.agenda(target.id), keys.visit(0, ledger)) for ledger in ledgers]
        self.runs.store([{**visit, "v": {"S": os.urandom(8).hex()}} for visit in visits])

    def due(self, target: Target, now_ms: int, limit: int) -> Sequence[str]:
        asked = self.runs.between(keys.agenda(target.id), keys.moment(0), keys.moment(now_ms + 1))
        visits = islice(self.runs.items(asked, limit), limit)
        return list(dict.fromkeys(item["s"]["S"].partition(keys.END)[2] for item in visits))
