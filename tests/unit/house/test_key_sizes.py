"""No key overflows: the longest names that the doors let in fit DynamoDB's limits, with every letter escaped."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.delivery.adapters.dynamodb import keys as delivery_keys
from millrace.delivery.domain.ranges import Range
from millrace.delivery.domain.states import Delivery, Status
from millrace.lake.adapters.dynamodb.policies import DynamoPolicies
from millrace.lake.domain.retention_rules import CONTRACTS, MAX_SCOPE_BYTES, Change, check_scope
from millrace.ledger.adapters.dynamodb import claims
from millrace.ledger.adapters.dynamodb.log import _bucket_key
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import Ledger, join_key, stream_ledger
from millrace.ledger.domain.naming import MAX_NAME_BYTES
from millrace.streams.adapters.dynamodb.rows import _intent_key
from millrace.streams.application.markers import marker_group
from millrace.streams.ports import Intent
from millrace.sync.adapters.dynamodb import _partition_key
from millrace.sync.domain.submit import MAX_ID_BYTES, MAX_PARTITION_BYTES

PARTITION_KEY, SORT_KEY = 2048, 1024
LONGEST = "n" * MAX_NAME_BYTES
"""New names hold nothing that is escaped."""
STREAM = stream_ledger(LONGEST, LONGEST, LONGEST)


class Recording:
    """A table that remembers the key of its last update."""

    key: dict[str, Any]

    def update_item(self, Key: dict[str, Any], **_: Any) -> None:  # noqa: N803 - DynamoDB's word
        self.key = Key


def size(text: str) -> int:
    return len(text.encode())


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("letter", ["%", "#", "x", "ü", ":"])
def test_a_scope_of_retention_is_refused_by_its_field_before_its_key_overflows(contract: str, letter: str) -> None:
    table, change = Recording(), Change("%" * MAX_PARTITION_BYTES, advance_to=1)
    accepted, refused = 0, ""
    for length in range(1, MAX_SCOPE_BYTES + 1):
        text = letter * length + "*"
        try:
            scope = check_scope("%" * MAX_NAME_BYTES, contract, text)
        except BadRequest as refusal:
            refused = refusal.details["field"]
            continue
        DynamoPolicies(table, "t").change(scope, change)  # type: ignore[arg-type]
        assert size(table.key["s"]["S"]) <= SORT_KEY
        assert size(table.key["p"]["S"]) <= PARTITION_KEY
        accepted = length
    assert accepted >= MAX_NAME_BYTES
    assert refused == "scope"


@pytest.mark.parametrize("id_", ["%" * 256, "#" * 257, "x" * MAX_ID_BYTES, "ü" * (MAX_ID_BYTES // 2)])
def test_an_id_fits_its_claim(id_: str) -> None:
    odd = Ledger.of("sync", "%" * MAX_NAME_BYTES, "%" * MAX_NAME_BYTES)
    assert size(claims.claim_key(odd, id_)) <= PARTITION_KEY
    assert size(_partition_key(odd, "%" * MAX_PARTITION_BYTES)) <= PARTITION_KEY
    assert size(_bucket_key(odd, 2**53)) <= PARTITION_KEY


def test_the_longest_stream_fits_every_key_it_becomes_part_of() -> None:
    waiting = Range(1, 2, Delivery(Status.PENDING, 1, 1, 1, next_ms=1))
    for sort in (
        STREAM.name,
        delivery_keys.pointer(STREAM.name, waiting),
        delivery_keys.row(STREAM.name, 2**53),
        delivery_keys.visit(2**40, STREAM.name),
        _intent_key(Intent(marker_group(LONGEST, LONGEST), "m" * 128, "f" * 32))["s"]["S"],
    ):
        assert size(sort) <= SORT_KEY
    assert size(delivery_keys.rows(join_key("%" * MAX_NAME_BYTES, "%" * MAX_NAME_BYTES))) <= PARTITION_KEY
