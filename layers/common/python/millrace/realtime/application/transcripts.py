"""Transcripts: a session's best text per utterance, from a stored projection that each read brings up to the head."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.access import OPERATOR, Identity
from millrace.realtime.application.fold_transcripts import FoldTranscripts
from millrace.realtime.domain.session_access import readable_session
from millrace.realtime.domain.time_order import PAGE_BYTES, size_of
from millrace.realtime.domain.transcript import lines, place

Place = tuple[int, str]
"""Of an utterance in its transcript: `startMs` and `utteranceId`."""


@dataclass(frozen=True, slots=True)
class SessionTranscript:
    """Utterances in order, as many as an answer may hold; with `has_more` the rest follows the last of them.

    `pruned_through`: events up to there are gone from the log, and their text is here nevertheless. Not `complete`:
    some of them went before their text was kept, up to that position at most.
    """

    utterances: list[dict[str, Any]]
    sequence: int
    has_more: bool
    pruned_through: int | None
    complete: bool


@dataclass(frozen=True, slots=True)
class Transcripts:
    fold: FoldTranscripts
    max_bytes: int = PAGE_BYTES

    def __call__(
        self, identity: Identity, session_id: str, after: Place | None = None, *, rebuild: bool = False
    ) -> SessionTranscript:
        """The transcript as of the head. To rebuild it is an operator's work."""
        session = readable_session(identity, session_id)
        if rebuild:
            identity.require(OPERATOR)
        folded = self.fold(session, rebuild=rebuild)
        told = lines(folded.transcript)
        rest = told if after is None else told[bisect_right(told, after, key=place) :]
        kept, size = 0, 0
        for line in rest:
            size += size_of(line)
            if kept and size > self.max_bytes:
                break
            kept += 1
        return SessionTranscript(
            rest[:kept],
            folded.through,
            kept < len(rest),
            folded.pruned_through or None,
            complete=not folded.lost_through,
        )
