"""Find an event by the id that targets know it by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millrace.delivery.domain.sources import JOURNAL, inside, known_ledger, outside
from millrace.delivery.domain.targets import Target
from millrace.delivery.ports.targets import ClaimLookup, Positions
from millrace.ledger.application.read_log import READ_AT_ONCE, ReadLog
from millrace.ledger.domain.names import Ledger, join_key, split_key
from millrace.ledger.domain.page import Event
from millrace.ledger.ports import Log, Together


@dataclass(frozen=True, slots=True)
class EventPlace:
    ledger: str
    position: int
    event_type: str


@dataclass(frozen=True, slots=True)
class FindEvent:
    claims: ClaimLookup
    log: Log
    together: Together
    positions: Positions

    def __call__(self, target_key: str, event_id: str) -> Iterator[EventPlace]:
        """Where it is, among the ledgers that the target has been in."""
        tenant = split_key(target_key)[0]
        for ledger, id_ in self._candidates(target_key, tenant, event_id):
            event = self.committed(ledger, id_)
            if event is not None:
                kind = "" if event.record.body is None else outside(ledger.name, event)[1]
                yield EventPlace(ledger.name, event.position, kind)

    def _candidates(self, target_key: str, tenant: str, event_id: str) -> Iterator[tuple[Ledger, str]]:
        named = inside(tenant, event_id)
        if named is not None:
            yield named
            return
        for ledger, _ in self.positions.all(Target(target_key, ""), join_key(JOURNAL, tenant) + "#"):
            yield known_ledger(ledger), event_id

    def committed(self, ledger: Ledger, id_: str) -> Event | None:
        """From where its claim was made on; soon found, unless it was claimed long before it was committed."""
        claim = self.claims.find(ledger, id_)
        if claim is None or claim.ledger != ledger.name:
            return None
        at = claim.seen
        while pages := ReadLog(self.log, self.together)(ledger, at, at + READ_AT_ONCE, READ_AT_ONCE):
            for page in pages:
                for event in page.events():
                    if event.record.id == id_:
                        return event
            at = pages[-1].end
        return None
