"""Transcripts: a session's best text per utterance, from a stored projection brought up to the head on each read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.access import OPERATOR, Identity
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Projection, Projections
from millrace.realtime.application.replay import Replay
from millrace.realtime.domain.session_access import readable_session
from millrace.realtime.domain.transcript import Transcript, lines, merge

STORE_AFTER = 20
"""New events since the stored projection, or a tenth of what it covers, make storing it again worth the write."""


@dataclass(frozen=True, slots=True)
class Transcripts:
    replay: Replay
    projections: Projections

    def __call__(
        self, identity: Identity, session_id: str, *, rebuild: bool = False
    ) -> tuple[list[dict[str, Any]], int]:
        """The transcript, and the sequence it is taken at. To rebuild it is an operator's work."""
        session = readable_session(identity, session_id)
        if rebuild:
            identity.require(OPERATOR)
        return self.of_session(session, rebuild=rebuild)

    def of_session(self, session: Ledger, *, rebuild: bool = False) -> tuple[list[dict[str, Any]], int]:
        """The transcript, and the sequence it is taken at. Progress is stored on the way, so a long one gets done.

        `rebuild` reads the whole log again; what was pruned from it is kept from the stored projection.
        """
        stored = self.projections.load(session)
        pruned = self.replay.state.marks(session).floor > 1
        base = Projection(0, {}) if rebuild and not pruned else stored
        transcript: Transcript = {utterance: dict(event) for utterance, event in base.state.items()}
        at, kept = 0 if rebuild else stored.through, stored.through
        while True:
            events, at, head = self.replay.after(session, at)
            for event in events:
                merge(transcript, _needed(event))
            through, done = max(at, base.through), at >= head
            if through - kept >= max(STORE_AFTER, kept // 10) or (rebuild and done):
                self.projections.store(session, Projection(through, transcript), kept)
                kept = through
            if done:
                return lines(transcript), through


def _needed(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a transcript keeps of an event; other payload fields are not its business."""
    if not event["type"].startswith("transcript."):
        return event
    payload = {key: event["payload"].get(key) for key in ("utteranceId", "speaker", "text", "startMs", "endMs")}
    return {key: event[key] for key in ("eventId", "ts", "type", "sequence")} | {"payload": payload}
