"""Turns: which ledgers a fan-out serves first, so that no tenant waits behind all the ledgers of another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest

from millrace.ledger.domain.names import Ledger, split_key

SLICE_MS = 500
"""How long a batch of the log's stream is worked on; what is left goes through a queue, beside the next batches."""
SIDE_BY_SIDE = 8
"""Ledgers that one fan-out serves at the same time: most of it is waiting for storage."""


def in_turns(ledgers: Iterable[Ledger]) -> list[Ledger]:
    """One ledger of each tenant, then the second of each, and so on."""
    rounds = chain.from_iterable(zip_longest(*by_tenant(ledgers).values()))
    return [ledger for ledger in rounds if ledger is not None]


def by_tenant(ledgers: Iterable[Ledger]) -> Mapping[str, list[Ledger]]:
    tenants: dict[str, list[Ledger]] = {}
    for ledger in ledgers:
        tenants.setdefault(_tenant(ledger), []).append(ledger)
    return tenants


def _tenant(ledger: Ledger) -> str:
    """Of any name, also of one that no ledger of ours has."""
    parts = split_key(ledger.name)
    return parts[1] if len(parts) > 1 else ""
