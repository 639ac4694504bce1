"""What the streams contract needs beside the ledger: runtimes, rows that announce their changes, raw diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft
from millrace.streams.domain.grant import BreakGlassGrant
from millrace.streams.domain.negotiate import Negotiated


@dataclass(frozen=True, slots=True)
class RuntimeState:
    """A runtime as a client meets it: what that client's session negotiated, if it has, and the grants that have not
    expired."""

    negotiated: Negotiated | None = None
    grants: Sequence[BreakGlassGrant] = ()


class Runtimes(Protocol):
    def load(self, tenant: str, runtime_id: str, client_id: str) -> RuntimeState:
        """Strongly consistent."""

    def session(self, tenant: str, runtime_id: str, client_id: str) -> Negotiated | None:
        """What this client has negotiated with this runtime, else what an earlier release stored for the whole
        runtime. Strongly consistent."""

    def negotiate(self, tenant: str, runtime_id: str, client_id: str, negotiated: Negotiated) -> None:
        """In place of what this client negotiated before; no other client's changes."""

    def grants(self, tenant: str, runtime_id: str) -> Sequence[BreakGlassGrant]:
        """Every grant ever made for it, strongly consistent."""

    def put_grant(self, tenant: str, grant: BreakGlassGrant) -> None:
        """Store a grant, or what became of it. When it expires never changes."""


class Degraded(Protocol):
    def mark(self, stream: Ledger, subscription: str) -> bool:
        """Note that a subscription has lost history; False if that was noted before."""

    def is_marked(self, stream: Ledger, subscription: str) -> bool:
        """Strongly consistent."""


class DegradedSubscriptions(Protocol):
    def degraded_after(self, stream: Ledger, subscription: str, limit: int) -> Sequence[str]:
        """Up to `limit` subscriptions of a stream that have lost history and sort after this one; in order."""


class Negotiations(Protocol):
    def negotiated_after(
        self, tenant: str, runtime_id: str, client_id: str, limit: int
    ) -> Sequence[tuple[str, Negotiated]]:
        """Up to `limit` clients of a runtime that sort after this one, each with what it negotiated; in order."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """The event that tells of a row's change, until it is known to be committed."""

    ledger: Ledger
    draft: Draft
    client_id: str


@dataclass(frozen=True, slots=True)
class VersionedRow:
    """A thing that changes by versions 1, 2, 3, …, each with the writer's nonce and the event that tells of it."""

    version: int
    content: Mapping[str, Any]
    nonce: str
    pending: Announcement | None = None
    trail: Sequence[str] = ()
    """The nonces of some versions before this one, the latest last."""

    @property
    def nonces(self) -> Sequence[str]:
        return (*self.trail, self.nonce)


class Rows(Protocol):
    def get(self, group: str, key: str) -> VersionedRow | None:
        """Strongly consistent."""

    def put(self, group: str, key: str, row: VersionedRow) -> VersionedRow | None:
        """Store it if the stored version is one less (none is 0), else return the stored row, of version 0 if there is
        none. Its own nonce among that one's means that the write had happened, and the answer was lost."""

    def settle(self, group: str, key: str, version: int) -> None:
        """Forget what is pending, if the row still has this version."""

    def page(self, group: str, after: str, limit: int) -> Sequence[tuple[str, VersionedRow]]:
        """Up to `limit` rows with greater keys, in order of keys, strongly consistent; fewer only at the end."""


class RestorableRows(Rows, Protocol):
    def restore(self, group: str, key: str, row: VersionedRow) -> bool:
        """Store it if there is none, or one of a lower version; False if the stored one is as new."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Somebody is about to change a row, and will see to its event."""

    group: str
    key: str
    nonce: str


class Intents(Protocol):
    def leave(self, intent: Intent, now_ms: int) -> None:
        """Durable before the row is changed."""

    def clear(self, intent: Intent) -> None:
        """The event is committed, or the row was not changed. Idempotent."""

    def left_before(self, ms: int) -> Iterable[Intent]:
        """Those left before this time and never cleared: their process is dead."""


@dataclass(frozen=True, slots=True)
class RawEntry:
    """An event's sensitive values as they were sent, sealed for one grant."""

    stream_id: str
    event_id: str
    position: int
    sealed: bytes


class RawValues(Protocol):
    def keep(self, grant_id: str, entries: Sequence[RawEntry], expires_ms: int) -> None:
        """All of them, durable on return. One of the same stream and position again changes nothing."""

    def page(self, grant_id: str, after: str, limit: int) -> tuple[Sequence[RawEntry], str | None]:
        """In an order of its own; and where to go on, if there is more."""


class Sealer(Protocol):
    def seal(self, grant: BreakGlassGrant, content: bytes) -> bytes:
        """Encrypt for a grant; only while its salt is known can it be opened."""

    def open(self, grant: BreakGlassGrant, sealed: bytes) -> bytes:
        """Raises `GrantEnded` if the grant's salt is gone."""


class Streams(Protocol):
    def of_runtime(self, tenant: str, runtime_id: str) -> Sequence[Ledger]:
        """Every stream that has an event, by name; the cost follows what is found."""
