"""The waiting room of a busy ledger: requests that wait for a leader, and receipts that tell them their positions.

Everything here is for speed. Truth is only in pages: a request may be absorbed twice, a receipt may be missing or
late, and the rule of the commit protocol still decides. docs/adr/0012-busy-ledger.md has the argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from millrace.ledger.domain.page import Draft, Origin, Page


@dataclass(frozen=True, slots=True)
class Waiting:
    """One request: the drafts it has still to place, in its order, each with a confirmed claim on this ledger."""

    nonce: bytes
    drafts: tuple[Draft, ...]
    mark: int
    """The page end up to which its writer has itself looked for these ids."""
    origin: Origin
    stops: bool
    """Nothing after its first conflict may be committed."""
    arrived_ms: int
    ends_ms: int
    """After this its writer has given up, and nobody absorbs it."""


@dataclass(frozen=True, slots=True)
class Placing:
    """`count` drafts of a request from number `start` on are at `position` and the positions after it."""

    start: int
    count: int
    position: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one page that is confirmed holds, by request."""

    end: int
    """The page's end."""
    time_ms: int
    placed: Mapping[bytes, Sequence[Placing]]
    look: frozenset[bytes] = frozenset()
    """Requests of which nothing waits any more: what they miss was in the log before, or conflicts with it."""


LONGEST_LEASE_MS = 1_000
"""A lease that ends later than this from now was given by a clock that is wrong: it does not count."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What stands on a ledger's board: who leads until when, the latest receipts, and how many requests are left."""

    leader: bytes = b""
    until_ms: int = 0
    receipts: Sequence[Receipt] = field(default_factory=tuple)
    waiting: int = 0

    def is_free(self, now_ms: int) -> bool:
        """Nobody leads at this time."""
        return not now_ms < self.until_ms <= now_ms + LONGEST_LEASE_MS


def receipt_of(page: Page, requests: Mapping[bytes, Waiting]) -> Receipt:
    """The receipt of a page for those of its requests that wait for one."""
    placed: dict[bytes, list[Placing]] = {}
    first = page.first
    for part in page.parts:
        request = requests.get(part.nonce)
        if request is not None:
            ids = [record.id for record in page.records[first - page.first : first - page.first + part.count]]
            placed[part.nonce] = _placings(request, ids, first)
        first += part.count
    return Receipt(page.end, page.time_ms, placed)


def _placings(request: Waiting, ids: Sequence[str], first: int) -> list[Placing]:
    """Neighbours in the request that are neighbours in the page are told in one."""
    numbers = {draft.id: number for number, draft in enumerate(request.drafts)}
    found: list[Placing] = []
    for offset, id_ in enumerate(ids):
        number = numbers[id_]
        last = found[-1] if found else None
        if last is not None and number == last.start + last.count:
            found[-1] = Placing(last.start, last.count + 1, last.position)
        else:
            found.append(Placing(number, 1, first + offset))
    return found
