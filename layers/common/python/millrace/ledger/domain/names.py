"""Names: which ledger an event belongs to, in which scope its id is unique, and in which bucket a position lies."""

from __future__ import annotations

from dataclasses import dataclass

INDEXED = frozenset({"sync"})
"""The contracts whose events name partitions: only their ledgers have a partition index, and retention by partition."""
TIMED = frozenset({"realtime"})
"""The contracts whose events are also read in the order of their own times: their ledgers have a time index."""
BUCKET = 1024
"""Positions per bucket. A page never crosses a bucket's end: the bucket of a position is arithmetic, not a look-up."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """One ordered, gapless, deduplicated, append-only log. Two ledgers may share a dedupe scope."""

    name: str
    dedupe_scope: str

    @classmethod
    def of(cls, contract: str, tenant: str, *scope: str) -> Ledger:
        """A ledger whose dedupe scope is itself."""
        name = join_key(contract, tenant, *scope)
        return cls(name, name)

    @property
    def contract(self) -> str:
        return self.name.partition("#")[0]

    @classmethod
    def to_read(cls, name: str) -> Ledger:
        """A ledger known only by name, as consumers know it. Nobody may commit through it."""
        return cls(name, "")


def join_key(*parts: str) -> str:
    """Join key parts so that different parts never give the same key: `a#b` + `c` is not `a` + `b#c`."""
    return "#".join(part.replace("%", "%25").replace("#", "%23") for part in parts)


def split_key(key: str) -> list[str]:
    """The parts `join_key` joined."""
    return [part.replace("%23", "#").replace("%25", "%") for part in key.split("#")]


def bucket_of(position: int) -> int:
    return (position - 1) // BUCKET


def bucket_last(bucket: int) -> int:
    """The last position of a bucket: always a page end, once it is taken."""
    return (bucket + 1) * BUCKET


def bucket_end(position: int) -> int:
    """The last position of the bucket that holds `position`."""
    return bucket_last(bucket_of(position))


def realtime_ledger(tenant: str, session_id: str) -> Ledger:
    """One ledger a session; an event id is used once in the whole tenant."""
    return Ledger(join_key("realtime", tenant, session_id), join_key("realtime", tenant))


def stream_ledger(tenant: str, runtime_id: str, stream_id: str) -> Ledger:
    return Ledger.of("streams", tenant, runtime_id, stream_id)


def catalog_ledger(tenant: str, domain: str) -> Ledger:
    """One ledger a domain; an idempotency key is used once in it."""
    return Ledger.of("catalog", tenant, domain)


def ledger_named(name: str) -> Ledger:
    """The ledger of this name with its dedupe scope, which follows from the name."""
    contract, tenant, *_ = [*split_key(name), ""]
    return Ledger(name, join_key(contract, tenant) if contract == "realtime" else name)
