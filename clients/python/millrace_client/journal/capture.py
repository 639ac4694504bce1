"""Capture: make events durable before anyone asks whether they can be delivered (D2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millrace.delivery.domain.events import Captured
from millrace.delivery.domain.families import Families, Family, may_discard
from millrace_client.journal.ports import Journal, Taken

DISCARDED = "opt_out_discarded"
REFUSED = "opt_out_refused"


@dataclass(frozen=True, slots=True)
class Report:
    """`discarded` and `kept_despite_opt_out` are ids: an opt-out that was granted, and one that was refused."""

    taken: Sequence[Taken]
    discarded: Sequence[str] = ()
    kept_despite_opt_out: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Capture:
    journal: Journal
    families: Families
    clock: Callable[[], int]

    def __call__(self, events: Sequence[Captured], *, opt_out: bool = False) -> Report:
        """All of them, or none. Nothing here looks at a gate."""
        now_ms = self.clock()
        kept: list[tuple[Captured, Family]] = []
        discarded: list[str] = []
        refused: list[str] = []
        for event in events:
            family = self.families.of(event.event_type)
            out = opt_out or self.families.wants_out(event.event_type)
            if out and may_discard(family):
                discarded.append(event.event_id)
                continue
            if out:
                refused.append(event.event_id)
            kept.append((event, family))
        taken = self.journal.capture(kept, now_ms)
        for what, ids in ((DISCARDED, discarded), (REFUSED, refused)):
            if ids:
                self.journal.audit(what, ids, "", now_ms)
        return Report(taken, discarded, refused)
