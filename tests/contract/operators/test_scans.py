"""Scans of the log and of the claims, in memory and where they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from millrace.ledger.adapters.dynamodb.claims import DynamoClaims
from millrace.ledger.adapters.dynamodb.log import DynamoLog
from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Origin, Page, Record
from millrace.ledger.ports import Claims, Log
from millrace.operators.adapters.clients import identity_of
from millrace.operators.adapters.memory import MemoryClaimScan, MemoryLogScan
from millrace.operators.adapters.scans import DynamoClaimScan, DynamoLogScan
from millrace.operators.ports import ClaimScan, LogScan, Scanned, StoredClaim
from tests.support.aws_tables import client_for, create_tables

SEGMENTS = 3
NAMES = [f"sync#t#p{number}" for number in range(25)]


@dataclass(frozen=True)
class Stores:
    log: Log
    claims: Claims
    log_scan: LogScan
    claim_scan: ClaimScan


@pytest.fixture(params=["memory", "embedded"])
def stores(request: pytest.FixtureRequest) -> Stores:
    if request.param == "memory":
        log, claims = MemoryLog(), MemoryClaims()
        return Stores(log, claims, MemoryLogScan(log), MemoryClaimScan(claims))
    tables, together = create_tables(client_for(request.getfixturevalue("endpoint")), ("Log", "Claims")), Threads()
    stored = DynamoClaims(tables.client, tables.claims, together)
    log_scan = DynamoLogScan(tables.client, tables.log)
    return Stores(DynamoLog(tables.client, tables.log, together), stored, log_scan, DynamoClaimScan(stored))


def page(first: int, count: int = 2) -> Page:
    records = tuple(Record(f"e{first + number}", b"d" * 17, b"{}") for number in range(count))
    return Page(first, records, 1, Origin("me"), b"n")


def parts(scan: Any, segment: int) -> Iterator[Scanned[Any]]:
    part = scan(segment, SEGMENTS, None)
    yield part
    while part.after is not None:
        part = scan(segment, SEGMENTS, part.after)
        yield part


def everything(scan: Any) -> list[Any]:
    return [one for segment in range(SEGMENTS) for part in parts(scan, segment) for one in part.found]


def test_every_ledger_is_found_once_however_many_pages_it_has(stores: Stores) -> None:
    for name in NAMES:
        for first in (1, 3, 1025):
            stores.log.append(Ledger(name, name), page(first))
    assert sorted(everything(stores.log_scan.scan)) == sorted(NAMES)
    assert stores.log_scan.count() >= 0


def test_a_name_with_the_separator_in_it_is_found_whole(stores: Stores) -> None:
    ledger = Ledger.of("sync", "a#b", "c%d")
    stores.log.append(ledger, page(1))
    assert everything(stores.log_scan.scan) == [ledger.name]


def test_every_claim_is_found_and_lowered_only_if_it_is_as_it_was(stores: Stores) -> None:
    ledger = Ledger.of("sync", "t", "demo")
    ids = [f"id {number}" for number in range(60)]
    stores.claims.create(ledger, ids, 7)
    found: list[StoredClaim] = everything(stores.claim_scan.scan)
    assert {(claim.ledger, claim.seen) for claim in found} == {(ledger.name, 7)}
    assert len({claim.key for claim in found}) == len(ids)
    assert stores.claim_scan.lower(found[0], 3)
    assert not stores.claim_scan.lower(found[0], 2), "it has changed since"
    assert sorted(claim.seen for claim in stores.claims.get(ledger, ids).values()) == [3, *[7] * 59]


def test_missing_claims_are_told(stores: Stores) -> None:
    ledger = Ledger.of("sync", "t", "demo")
    stores.claims.create(ledger, ["a", "b"], 0)
    assert stores.claim_scan.missing(ledger, ["a", "x", "b", "y"]) == ["x", "y"]
    assert stores.claim_scan.create(ledger, ["x", "y"], 0).created == {"x", "y"}
    assert not stores.claim_scan.missing(ledger, ["a", "x", "b", "y"])


def test_a_table_that_was_made_again_is_another_one(endpoint: str) -> None:
    client = client_for(endpoint)
    tables = create_tables(client, ("State",))
    before = identity_of(client, [tables.state])
    assert identity_of(client, [tables.state]) == before
    stated: Any = client.describe_table(TableName=tables.state)["Table"]
    client.delete_table(TableName=tables.state)
    client.create_table(
        TableName=tables.state,
        KeySchema=stated["KeySchema"],
        AttributeDefinitions=stated["AttributeDefinitions"],
        BillingMode="PAY_PER_REQUEST",
    )
    assert identity_of(client, [tables.state]) != before
