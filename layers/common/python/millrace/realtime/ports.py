"""What the realtime contract needs beside the ledger: counters, checkpoints, and a stored transcript."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from millrace.ledger.domain.names import Ledger


class Counters(Protocol):
    def add(self, tenant: str, counts: Mapping[str, int]) -> None:
        """Add to a tenant's counters, whichever process asks."""

    def read(self, tenant: str) -> Mapping[str, int]:
        """Every counter of the tenant that was ever added to, strongly consistent."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """A reader's place in (`ts`, `eventId`) order, and in the log if it is known there. `instant` is `ts` in ns."""

    ts: str
    instant: int
    event_id: str
    sequence: int | None = None


class Checkpoints(Protocol):
    def move(self, session: Ledger, consumer: str, to: Watermark) -> bool:
        """Move a consumer's checkpoint forward or leave it; False if it would have gone back."""

    def get(self, session: Ledger, consumer: str) -> Watermark | None:
        """Strongly consistent."""


class Sessions(Protocol):
    def of_tenant(self, tenant: str) -> Iterable[Ledger]:
        """Every session ledger of a tenant; the cost follows what is found."""
