"""Fold transcripts: bring a session's stored transcript up to its log, for those who read it and before pruning (R8).

Retention asks for `keep` first and takes only what is stored by then. So an event that is gone from the log is in the
stored transcript, and whoever finds one gone that was not there a moment ago loads the stored one again. What is taken
in can be taken in twice, in any order, without a change: the stored transcript never has to be undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millrace.ledger.domain.errors import Contention
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Projection, Projections
from millrace.realtime.application.read_session import ReadSession, Stretch
from millrace.realtime.domain.transcript import Transcript, better, merge

STORE_AFTER = 20
"""New events since the stored projection, or a tenth of what it covers, make storing it again worth the write."""
PATIENCE = 50
"""Times that others may store the same transcript first."""


@dataclass(slots=True)
class Folded:
    """A transcript up to a position. `lost_through`: the last event that was pruned before anybody had kept it, or 0.
    `pruned_through`: the last event that is known to be gone from the log, or 0."""

    transcript: Transcript = field(default_factory=dict)
    through: int = 0
    lost_through: int = 0
    pruned_through: int = 0

    def take_in(self, stored: Projection) -> None:
        for utterance, event in stored.state.items():
            known = self.transcript.get(utterance)
            self.transcript[utterance] = event if known is None else better(known, event)
        self.through = max(self.through, stored.through)
        self.lost_through = max(self.lost_through, stored.lost_through)

    def take(self, read: Stretch) -> None:
        for event in read.events:
            merge(self.transcript, _needed(event))
        self.through = max(self.through, read.reached)
        self.pruned_through = max(self.pruned_through, read.gone, read.floor - 1)

    def to_store(self) -> Projection:
        return Projection(self.through, self.transcript, self.lost_through)


@dataclass(frozen=True, slots=True)
class FoldTranscripts:
    session: ReadSession
    projections: Projections

    def __call__(self, session: Ledger, *, rebuild: bool = False) -> Folded:
        """Up to the head. Progress is stored on the way, so a long one gets done.

        `rebuild` reads the whole log again; what was pruned from it is kept from the stored projection.
        """
        if rebuild:
            return self._rebuilt(session)
        folded, stored = self._brought_up(session, self.projections.load(session), None)
        if _is_worth_storing(folded, stored):
            self.projections.store(session, folded.to_store(), stored)
        return folded

    def keep(self, session: Ledger, through: int) -> int:
        """Store the transcript up to a position, or to the head. The position up to which it is stored now."""
        for _ in range(PATIENCE):
            stored = self.projections.load(session)
            if stored.through >= through:
                return stored.through
            folded, base = self._brought_up(session, stored, through)
            if folded.through <= stored.through:
                return stored.through
            self.projections.store(session, folded.to_store(), base)
        raise Contention("Others kept storing this session's transcript; try again later.")

    def _brought_up(self, session: Ledger, stored: Projection, through: int | None) -> tuple[Folded, Projection]:
        """What is stored and what follows it in the log; and the stored one that all of it goes over."""
        folded = Folded()
        folded.take_in(stored)
        while True:
            read = self.session.after(session, folded.through)
            if read.gone:
                kept = self.projections.load(session)
                if kept.through > folded.through:
                    stored = kept
                    folded.take_in(kept)
                    continue
                folded.lost_through = read.gone
            folded.take(read)
            if folded.through >= min(read.head, read.head if through is None else through):
                return folded, stored
            if _is_worth_storing(folded, stored):
                self.projections.store(session, folded.to_store(), stored)
                stored = self.projections.load(session)
                folded.take_in(stored)

    def _rebuilt(self, session: Ledger) -> Folded:
        for _ in range(PATIENCE):
            stored, folded, at = self.projections.load(session), Folded(), 0
            while True:
                read = self.session.after(session, at)
                if read.gone:
                    # If it was kept only after `stored` was loaded, storing over that fails, and all begins again.
                    folded.take_in(stored)
                    folded.lost_through = max(folded.lost_through, read.gone if read.gone > stored.through else 0)
                folded.take(read)
                at = read.reached
                if at >= read.head:
                    break
            if self.projections.store(session, folded.to_store(), stored):
                return folded
        raise Contention("Others kept storing this session's transcript; try again later.")


def _is_worth_storing(folded: Folded, stored: Projection) -> bool:
    return folded.through - stored.through >= max(STORE_AFTER, stored.through // 10)


def _needed(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a transcript keeps of an event; other payload fields are not its business."""
    if not event["type"].startswith("transcript."):
        return event
    payload = {key: event["payload"].get(key) for key in ("utteranceId", "speaker", "text", "startMs", "endMs")}
    return {key: event[key] for key in ("eventId", "ts", "type", "sequence")} | {"payload": payload}
