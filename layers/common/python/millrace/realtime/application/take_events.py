"""Take events: the valid ones of a request are published, the invalid ones are refused and counted (R3, R4, R9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import Unavailable
from millrace.realtime.application.count_events import DEDUPED, INVALID
from millrace.realtime.application.publish import TOO_LARGE, Publish, Published
from millrace.realtime.domain.verdict import Invalid, Valid
from millrace.realtime.ports import Counters


@dataclass(frozen=True, slots=True)
class TakenEvents:
    """One result per event, in order. `counted`: the tenant's counters have them."""

    results: Sequence[Published | Invalid]
    counted: bool

    @property
    def invalid(self) -> int:
        """Those that break a rule, and those over the limit of size."""
        return sum(isinstance(result, Invalid) or result.problem == TOO_LARGE for result in self.results)

    @property
    def deduped(self) -> int:
        return sum(isinstance(result, Published) and result.deduped for result in self.results)

    @property
    def emitted(self) -> int:
        return sum(isinstance(one, Published) and not one.problem and not one.deduped for one in self.results)


@dataclass(frozen=True, slots=True)
class TakeEvents:
    publish: Publish
    counters: Counters

    def __call__(self, identity: Identity, verdicts: Sequence[Valid | Invalid], trace: str = "") -> TakenEvents:
        """What is stored is stored: counters that cannot be reached are behind, and nothing else is wrong."""
        valid = [verdict for verdict in verdicts if isinstance(verdict, Valid)]
        published = iter(self.publish(identity, valid, trace))
        results = [next(published) if isinstance(verdict, Valid) else verdict for verdict in verdicts]
        taken = TakenEvents(results, counted=True)
        try:
            self.counters.add(identity.tenant, {INVALID: taken.invalid, DEDUPED: taken.deduped})
        except Unavailable:
            return TakenEvents(results, counted=False)
        return taken
