"""Transcripts: a session's best text per utterance, from a stored projection brought up to the head on each read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millrace.application.replay import Replay
from millrace.domain.ledger import Ledger
from millrace.domain.transcript import Transcript, lines, merge
from millrace.ports_realtime import Projection, Projections

STORE_AFTER = 20
"""New events since the stored projection that make storing it again worth a write."""


@dataclass(frozen=True, slots=True)
class Transcripts:
    replay: Replay
    projections: Projections

    def __call__(self, session: Ledger, *, rebuild: bool = False) -> tuple[list[dict[str, Any]], int]:
        """The transcript, and the sequence it is taken at. `rebuild` starts from the log alone."""
        stored = self.projections.load(session)
        base = Projection(0, {}) if rebuild else stored
        transcript: Transcript = {utterance: dict(event) for utterance, event in base.state.items()}
        events, through = self.replay.after(session, base.through)
        for event in events:
            merge(transcript, _needed(event))
        if rebuild or through - stored.through >= STORE_AFTER:
            self.projections.store(session, Projection(through, transcript), stored.through)
        return lines(transcript), through


def _needed(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a transcript keeps of an event; other payload fields are not its business."""
    if not event["type"].startswith("transcript."):
        return event
    payload = {key: event["payload"].get(key) for key in ("utteranceId", "speaker", "text", "startMs", "endMs")}
    return {key: event[key] for key in ("eventId", "ts", "type", "sequence")} | {"payload": payload}
