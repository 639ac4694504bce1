"""Check targets: none may stand above the newest position of a ledger, for it would miss what comes there."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.delivery.ports.targets import Directory, Positions
from millrace.ledger.application.heads import find_head
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Log
from millrace.operators.domain.rebuilt import TARGETS_AHEAD, Rebuilt


@dataclass(frozen=True, slots=True)
class CheckTargets:
    directory: Directory
    positions: Positions
    log: Log

    def __call__(self, report: Rebuilt) -> None:
        for tenant in self.directory.tenants():
            for kept in self.directory.of(tenant):
                report.count("targets")
                for ledger, position in self.positions.all(kept.target.target()):
                    self._check(kept.target.key, ledger, position.at, report)

    def _check(self, target: str, name: str, at: int, report: Rebuilt) -> None:
        ledger = Ledger.to_read(name)
        page = self.log.holding(ledger, at) if at else None
        if at and (page is None or page.end < at):
            head = find_head(self.log, ledger, 0)
            if head < at:
                report.find(TARGETS_AHEAD, f"{target} in {name} {at}, newest {head}")
