"""A drain's lease: who serves a target, since when, and until when nobody else may (D6).

One drain of a target runs at a time because it holds a lease. It renews the lease while it lives; when it dies, the
lease ends by itself, and whoever comes next goes on. A lease keeps requests apart and decides nothing else: what a
target has is in the delivery ledger alone, so two drains at once would cost a request sent twice, never an event.
"""

from __future__ import annotations

from dataclasses import dataclass

LEASE_MS = 9_000
"""How long a lease lasts without being renewed: the longest that a dead drain keeps others away."""
BEAT_MS = 3_000
"""How often a drain renews its lease, and keeps its wake-up out of other hands."""
HIDDEN_MS = LEASE_MS + BEAT_MS
"""How long after the last beat a drain's wake-up comes again: by then the lease has ended."""
SAFE_MS = 1_000
"""So much of a lease must be left before a request is sent: clocks differ."""
SLICE_MS = 10_000
"""How long a drain goes on before it makes room for others; it asks for its next turn itself."""


@dataclass(frozen=True, slots=True)
class Drain:
    """`until_ms`: when the lease ends unless it is renewed; a drain that is over gave it back before."""

    tenant: str
    target_id: str
    holder: str
    since_ms: int
    until_ms: int

    def lives(self, now_ms: int) -> bool:
        return now_ms < self.until_ms
