"""Checkpoint: move a consumer's place in a session forward (R7)."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.ledger.domain.access import Identity
from millrace.realtime.domain.session_access import readable_session
from millrace.realtime.ports import Checkpoints, Watermark


@dataclass(frozen=True, slots=True)
class Checkpoint:
    checkpoints: Checkpoints

    def __call__(self, identity: Identity, session_id: str, consumer: str, to: Watermark) -> bool:
        """False if it would have gone back; then it stays."""
        return self.checkpoints.move(readable_session(identity, session_id), consumer, to)
