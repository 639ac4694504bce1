"""What the use cases need from the world. Each docstring is the contract every adapter is tested against."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Page
from millrace.ledger.domain.waiting import Notice, Waiting


@dataclass(frozen=True, slots=True)
class Claim:
    """Binds an id to a ledger for ever. `seen` is a page end: the id is in no page up to there."""

    ledger: str
    seen: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """What became of each id of one `create`. Ids in none of the three sets do not exist."""

    created: frozenset[str]
    existed: frozenset[str]
    failed: frozenset[str]


class Claims(Protocol):
    def create(self, ledger: Ledger, ids: Sequence[str], seen: int) -> Claimed:
        """Put each claim if it is absent. `failed` ids have an unknown outcome: ask again."""

    def get(self, ledger: Ledger, ids: Sequence[str]) -> Mapping[str, Claim]:
        """Every one of these ids' claims in the ledger's dedupe scope, strongly consistent; they must exist."""

    def advance(self, ledger: Ledger, ids: Sequence[str], seen: int) -> None:
        """Move `seen` upward, never down. Best effort: losing this loses only time."""


@dataclass(frozen=True, slots=True)
class Run:
    """Pages in order as one read found them; holes are possible. `more`: there are further ones to read."""

    pages: Sequence[Page]
    more: bool = False


class Log(Protocol):
    def append(self, ledger: Ledger, page: Page) -> Page | None:
        """Create the page, or return the page that already holds its first position. Never overwrites."""

    def read(self, ledger: Ledger, after: int, limit: int | None = None, through: int | None = None) -> Run:
        """Pages with `after` < `first` ≤ `through` in the bucket of `after` + 1, strongly consistent."""

    def holding(self, ledger: Ledger, position: int) -> Page | None:
        """The last page with `first` ≤ `position` in its bucket, strongly consistent: that position's, if it exists."""

    def get(self, ledger: Ledger, firsts: Sequence[int]) -> Mapping[int, Page]:
        """The pages that start at these positions, strongly consistent. Some may be left out: ask again."""

    def replace(self, ledger: Ledger, page: Page) -> bool:
        """Overwrite the page if its stored revision is one less than `page.revision`. Only pruning calls this."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Where things stand in a ledger: consumers' cursors (page ends) and the floor, the oldest retained position."""

    cursors: Mapping[str, int] = field(default_factory=dict)
    floor: int = 1
    noted: int = 0
    """The latest window in which a consumer noted that the ledger has grown; 0 if none did."""
    shards: int = field(default=1, kw_only=True)
    """Into how many shards the ledger's live audience is split."""

    @property
    def hint(self) -> int:
        """A page end at or below the head."""
        return max(self.cursors.values(), default=0)


class State(Protocol):
    def register(self, ledger: Ledger) -> None:
        """Make the ledger known to sweeps. Idempotent."""

    def ledgers(self) -> Iterable[Ledger]:
        """Every registered ledger, starting anywhere."""

    def marks(self, ledger: Ledger) -> Marks:
        """Cursors and floor, strongly consistent."""

    def move_cursor(self, ledger: Ledger, consumer: str, expected: int, to: int, noted: int = 0) -> bool:
        """Move a consumer's cursor from `expected` (0 = never set) to `to`; False if it stands elsewhere.

        `noted`: the window in which it noted the ledger before; 0 leaves what `marks` says of that as it is."""

    def raise_floor(self, ledger: Ledger, to: int) -> None:
        """Raise the floor, never lower it."""


@dataclass(frozen=True, slots=True)
class Leg:
    """Some ledgers of a list, and the place after them; an empty place is the end."""

    ledgers: Sequence[Ledger]
    place: str = ""


class Rounds(Protocol):
    """The lists of ledgers that sweeps go through, and where a sweep is in each of them."""

    def registered(self, place: str, limit: int) -> Leg:
        """Registered ledgers after the place, at most so many, perhaps none; an empty place is the beginning. Whoever
        goes on from each place to the next meets every ledger that was registered when it began."""

    def note(self, ledger: Ledger, window: int) -> None:
        """List the ledger among those that have grown in the window. Idempotent; the note is kept for `KEPT_MS`."""

    def noted(self, window: int, place: str, limit: int) -> Leg:
        """Ledgers that were noted in the window, in the same way as the registered ones."""

    def kept_place(self, lane: str) -> str:
        """The place that was kept last, or an empty one."""

    def keep_place(self, lane: str, place: str) -> None:
        """Keep it for the next sweep."""


class Doorbell(Protocol):
    def ring(self, ledgers: Iterable[Ledger]) -> None:
        """Tell the background consumers that these ledgers may have something new."""


class Meter(Protocol):
    def add(self, tenant: str, used_us: int, since_us: int, latest_us: int) -> int:
        """Move the moment up to which a tenant has used its rate on by so much: from `since_us` if it is earlier, and
        not beyond the latest. Returns it. Atomic."""


class Together(Protocol):
    def __call__(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run the calls side by side; results in order. The first error is raised after all have ended."""


@dataclass(frozen=True, slots=True)
class Projection:
    """What was folded out of a ledger's events up to `through`."""

    through: int
    state: Mapping[str, Any]
    lost_through: int = 0
    """The last position whose body was pruned before it could be folded; 0 if none was."""
    edition: str = field(default="", compare=False)
    """Which stored one this is, as `load` found it."""


class Projections(Protocol):
    def load(self, ledger: Ledger) -> Projection:
        """The stored projection, strongly consistent, or an empty one through 0."""

    def store(self, ledger: Ledger, projection: Projection, over: Projection) -> bool:
        """Keep it, whatever its size, if the stored one is still `over` as it was loaded; else change nothing.

        True: it is kept, and stays until another is stored over it, whenever this process or another one dies.
        """


class KeyRing(Protocol):
    def current(self) -> bytes:
        """The secret to sign with."""

    def find(self, key_id: bytes) -> Sequence[bytes]:
        """The secrets with this id among those that are still honoured; looked up afresh before giving up."""


class WaitingRoom(Protocol):
    """Requests that wait for a ledger's leader. For speed alone: a row that is lost or comes back changes no truth."""

    def leave(self, ledger: Ledger, request: Waiting) -> None:
        """Let it wait. It is forgotten some time after it ends, if nobody clears it before."""

    def look(self, ledger: Ledger) -> Sequence[Waiting]:
        """Who waits, in no order; strongly consistent. Of very many, some may be left out: look again."""

    def clear(self, ledger: Ledger, nonces: Sequence[bytes]) -> None:
        """Forget these requests. Idempotent."""


class Board(Protocol):
    """A ledger's notice board: one small row with the lease and the latest receipts. For speed alone, too."""

    def read(self, ledger: Ledger) -> Notice:
        """What stands there; may be a moment old."""

    def take(self, ledger: Ledger, leader: bytes, now_ms: int, until_ms: int) -> bool:
        """Become the leader, if nobody leads now: the lease has ended, or ends absurdly late (`LONGEST_LEASE_MS`)."""

    def post(self, ledger: Ledger, leader: bytes, notice: Notice) -> bool:
        """Replace the notice, if this one still leads; it may name another leader."""
