"""What a hub needs to keep and wake its targets, beside the ledger of their deliveries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from millrace.delivery.domain.bulk import WantedDeliveries
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.domain.replay import WantedRange
from millrace.delivery.domain.states import Delivery, Status
from millrace.delivery.domain.targets import Target, TargetState
from millrace.delivery.ports.deliveries import Found
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Claim


@dataclass(frozen=True, slots=True)
class Kept:
    """A target with how it fares."""

    target: HubTarget
    state: TargetState


@dataclass(frozen=True, slots=True)
class Everything:
    """`unreadable`: the ids of targets whose rows are in no form that we know."""

    kept: Sequence[Kept]
    unreadable: Sequence[str] = ()


class Directory(Protocol):
    """The targets of every tenant. All reads are strongly consistent."""

    def get(self, tenant: str, target_id: str) -> Kept | None:
        """One target. Raises `UnreadableRow`."""

    def of(self, tenant: str) -> Sequence[Kept]:
        """A tenant's targets that can be read, in one query, by id. The others are told, and hide none of these."""

    def everything(self, tenant: str) -> Everything:
        """The same, with those that cannot be read."""

    def tenants(self) -> Iterable[str]:
        """Every tenant that ever had a target."""

    def former(self, tenant: str) -> Iterable[str]:
        """The ids of targets that were removed, some of which may have been made again."""

    def put(self, target: HubTarget, before: HubTarget | None) -> bool:
        """Store it if what is stored is still `before`; False if not."""

    def remove(self, tenant: str, target_id: str) -> bool:
        """Forget the target and how it fares; its deliveries stay. False if there was none."""


class Secrets(Protocol):
    def seal(self, context: str, text: str) -> bytes:
        """Encrypt, bound to its context."""

    def open(self, context: str, sealed: bytes) -> str:
        """Raises `SecretsLost` if it was sealed elsewhere or under a secret that is gone."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a target stands in a ledger, and how many of its events it has."""

    at: int
    delivered: int = 0


class Positions(Protocol):
    def of(self, target: Target, ledgers: Sequence[str]) -> Mapping[str, Position]:
        """Those that exist, strongly consistent."""

    def all(self, target: Target, prefix: str = "") -> Iterable[tuple[str, Position]]:
        """Every ledger the target has been in whose name begins so."""

    def begin_at(self, target: Target, ledger: str, position: int) -> None:
        """Put the cursor there, never back."""

    def lowest_open(self, target: Target, ledger: str) -> int | None:
        """The first position that will be tried again by itself."""


class Agenda(Protocol):
    """Which ledgers a target's next drains are to visit, and when."""

    def note(self, target: Target, ledgers: Iterable[str]) -> None:
        """To be visited as soon as the target can be tried. The same note again changes nothing."""

    def due(self, target: Target, now_ms: int, limit: int) -> Sequence[str]:
        """Some of the ledgers for which a visit is due."""


@dataclass(frozen=True, slots=True)
class Wake:
    """A drain that is asked for. `scan`: look for ledgers that are behind, for nobody knows which."""

    tenant: str
    target_id: str
    ledgers: tuple[str, ...] = ()
    scan: bool = False
    most_events: int = 0
    """Begin with a batch of at most so many: time ran out while a larger one was being cut."""
    slow: bool = False
    """For the slots of slow targets. Only a drain sends such a one: it has looked how the target fares."""


class Wakes(Protocol):
    def send(self, wakes: Sequence[Wake]) -> None:
        """Ask for drains. A wake-up may come late, twice, or in another order."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of deliveries; `after` is where the next begins, None at the end."""

    found: Sequence[Found]
    after: str | None


@dataclass(frozen=True, slots=True)
class Counted:
    """Deliveries that are not done, by status. `complete`: all were counted; if not, there are at least so many."""

    counts: Mapping[Status, int]
    complete: bool


class Listing(Protocol):
    def page(self, target_id: str, status: Status | None, after: str, limit: int) -> Listed:
        """Deliveries of a target in this status, or all; a page may be short, and even empty, before the end."""

    def counts(self, target_id: str) -> Mapping[Status, int]:
        """How many deliveries are not done, by status."""

    def count_some(self, target_id: str, most_runs: int, status: Status | None = None) -> Counted:
        """The same, of no more than so many runs of equal deliveries: that bounds what it costs. With a status, at
        least those in it are counted."""

    def get(self, target_id: str, event_id: str) -> Found | None:
        """The delivery of one event, if it was attempted."""

    def at(self, target_id: str, ledger: str, position: int) -> Delivery | None:
        """The delivery of one event."""


@dataclass(frozen=True, slots=True)
class RetriedSome:
    """What one step of a bulk retry found and changed; `after` is where the next begins, None at the end."""

    matched: int
    retried: int
    after: str | None


class ManyDeliveries(Protocol):
    def retry(self, target_id: str, wanted: WantedDeliveries, after: str, now_ms: int, *, dry_run: bool) -> RetriedSome:
        """Make due at once what is wanted, beginning after `after`. The work of one call is bounded; what changed
        since it was read is left alone. A call that is repeated, or dies anywhere, changes nothing twice."""


@dataclass(frozen=True, slots=True)
class ReplayedSome:
    """What one step of a replay found and changed; `following` is where the next begins, None at the end."""

    matched: int
    replayed: int
    delivered_before: int
    following: int | None


class Replays(Protocol):
    def replay(self, target: Target, ledger: str, wanted: WantedRange, now_ms: int, *, dry_run: bool) -> ReplayedSome:
        """Make due at once what is wanted of the events that the target has passed, delivered or not. That they were
        delivered stays known. The work of one call is bounded; what changed since it was read is left alone."""


class ClaimLookup(Protocol):
    def find(self, ledger: Ledger, id_: str) -> Claim | None:
        """The claim of an id, if there is one; strongly consistent."""
