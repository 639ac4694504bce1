"""What a rebuild needs of storage beside the other rooms' ports. Each docstring is the contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Claimed

T = TypeVar("T")
Key = Mapping[str, Any]
"""Where a scan goes on: plain JSON, for storage alone to understand."""


@dataclass(frozen=True, slots=True)
class Scanned(Generic[T]):
    """A part of a segment: what it has, how many rows were looked at, and where to go on (None: at the end)."""

    found: Sequence[T]
    rows: int
    after: Key | None


class LogScan(Protocol):
    def count(self) -> int:
        """About how many pages there are."""

    def scan(self, segment: int, segments: int, after: Key | None) -> Scanned[str]:
        """The names of ledgers, each once in the whole log: where its first page is."""


@dataclass(frozen=True, slots=True)
class StoredClaim:
    key: str
    ledger: str
    seen: int


class ClaimScan(Protocol):
    def count(self) -> int:
        """About how many claims there are."""

    def scan(self, segment: int, segments: int, after: Key | None) -> Scanned[StoredClaim]:
        """Every claim that was there before the scan."""

    def lower(self, claim: StoredClaim, seen: int) -> bool:
        """Lower `seen` of a claim; False if the claim has changed since it was scanned."""

    def missing(self, ledger: Ledger, ids: Sequence[str]) -> Sequence[str]:
        """Those of the ids that have no claim, strongly consistent."""

    def create(self, ledger: Ledger, ids: Sequence[str], seen: int) -> Claimed:
        """As in `Claims`."""


class RunPlace(Protocol):
    """Where a long run stands, so that another can go on. It belongs to certain tables."""

    def load(self) -> dict[str, Any] | None:
        """What was saved for these tables, if anything was."""

    def save(self, content: Mapping[str, Any]) -> None:
        """Durable on return, in place of what was saved before."""

    def clear(self) -> None:
        """The run is complete."""


class LedgerNames(Protocol):
    def page(self, first: str, last: str, limit: int) -> Sequence[str]:
        """The names of registered ledgers from `first` to `last`, both included, in order: `limit` of them, or fewer at
        the end. What it costs follows the limit, not how many there are."""
