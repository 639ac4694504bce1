"""In-memory runtimes, rows, intents and raw values of the streams contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from millrace.ledger.adapters.memory import MemoryState
from millrace.ledger.domain.names import Ledger, join_key
from millrace.streams.domain.grant import BreakGlassGrant
from millrace.streams.domain.negotiate import Negotiated
from millrace.streams.ports import Intent, RawEntry, RuntimeState, VersionedRow


@dataclass(slots=True)
class MemoryRuntimes:
    state: MemoryState
    clock: Callable[[], int]
    negotiated: dict[tuple[str, str, str | None], Negotiated] = field(default_factory=dict)
    """By tenant, runtime and client; without a client as earlier releases stored it."""
    made: dict[tuple[str, str], dict[str, BreakGlassGrant]] = field(default_factory=dict)
    marked: set[tuple[str, str]] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)

    def load(self, tenant: str, runtime_id: str, client_id: str) -> RuntimeState:
        negotiated = self.session(tenant, runtime_id, client_id)
        with self.lock:
            now = self.clock()
            grants = self.made.get((tenant, runtime_id), {}).values()
            running = [grant for grant in grants if grant.expires_ms >= now]
            return RuntimeState(negotiated, running)

    def session(self, tenant: str, runtime_id: str, client_id: str) -> Negotiated | None:
        with self.lock:
            whole = self.negotiated.get((tenant, runtime_id, None))
            return self.negotiated.get((tenant, runtime_id, client_id), whole)

    def negotiated_after(
        self, tenant: str, runtime_id: str, client_id: str, limit: int
    ) -> Sequence[tuple[str, Negotiated]]:
        with self.lock:
            found = [
                (client, negotiated)
                for (of, runtime, client), negotiated in self.negotiated.items()
                if (of, runtime) == (tenant, runtime_id) and client is not None and client > client_id
            ]
        return sorted(found, key=lambda one: one[0])[:limit]

    def grants(self, tenant: str, runtime_id: str) -> Sequence[BreakGlassGrant]:
        with self.lock:
            return list(self.made.get((tenant, runtime_id), {}).values())

    def negotiate(self, tenant: str, runtime_id: str, client_id: str, negotiated: Negotiated) -> None:
        with self.lock:
            self.negotiated[tenant, runtime_id, client_id] = negotiated

    def put_grant(self, tenant: str, grant: BreakGlassGrant) -> None:
        with self.lock:
            self.made.setdefault((tenant, grant.runtime_id), {})[grant.id] = grant

    def mark(self, stream: Ledger, subscription: str) -> bool:
        with self.lock:
            known = (stream.name, subscription) in self.marked
            self.marked.add((stream.name, subscription))
            return not known

    def is_marked(self, stream: Ledger, subscription: str) -> bool:
        with self.lock:
            return (stream.name, subscription) in self.marked

    def degraded_after(self, stream: Ledger, subscription: str, limit: int) -> Sequence[str]:
        with self.lock:
            return sorted(id_ for name, id_ in self.marked if name == stream.name and id_ > subscription)[:limit]

    def of_runtime(self, tenant: str, runtime_id: str) -> Sequence[Ledger]:
        prefix = join_key("streams", tenant, runtime_id) + "#"
        return sorted((one for one in self.state.ledgers() if one.name.startswith(prefix)), key=lambda one: one.name)


@dataclass(slots=True)
class MemoryRows:
    items: dict[tuple[str, str], VersionedRow] = field(default_factory=dict)
    left: dict[Intent, int] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def get(self, group: str, key: str) -> VersionedRow | None:
        with self.lock:
            return self.items.get((group, key))

    def put(self, group: str, key: str, row: VersionedRow) -> VersionedRow | None:
        with self.lock:
            stored = self.items.get((group, key))
            if (stored.version if stored else 0) != row.version - 1:
                return stored or VersionedRow(0, {}, "")
            self.items[group, key] = row
            return None

    def restore(self, group: str, key: str, row: VersionedRow) -> bool:
        with self.lock:
            stored = self.items.get((group, key))
            if stored is not None and stored.version >= row.version:
                return False
            self.items[group, key] = row
            return True

    def settle(self, group: str, key: str, version: int) -> None:
        with self.lock:
            stored = self.items.get((group, key))
            if stored is not None and stored.version == version:
                self.items[group, key] = replace(stored, pending=None)

    def page(self, group: str, after: str, limit: int) -> Sequence[tuple[str, VersionedRow]]:
        with self.lock:
            keys = sorted((key for of, key in self.items if of == group and key > after), key=str.encode)
            return [(key, self.items[group, key]) for key in keys[:limit]]

    def leave(self, intent: Intent, now_ms: int) -> None:
        with self.lock:
            self.left[intent] = now_ms

    def clear(self, intent: Intent) -> None:
        with self.lock:
            self.left.pop(intent, None)

    def left_before(self, ms: int) -> Iterable[Intent]:
        with self.lock:
            return [intent for intent, left in self.left.items() if left < ms]


@dataclass(slots=True)
class MemoryRawValues:
    entries: dict[str, dict[str, RawEntry]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def keep(self, grant_id: str, entries: Sequence[RawEntry], expires_ms: int) -> None:  # noqa: ARG002 - the reader checks
        with self.lock:
            kept = self.entries.setdefault(grant_id, {})
            for entry in entries:
                kept.setdefault(join_key(entry.stream_id, f"{entry.position:020d}"), entry)

    def page(self, grant_id: str, after: str, limit: int) -> tuple[Sequence[RawEntry], str | None]:
        with self.lock:
            kept = self.entries.get(grant_id, {})
            keys = sorted(key for key in kept if key > after)
            return [kept[key] for key in keys[:limit]], keys[limit - 1] if len(keys) > limit else None
