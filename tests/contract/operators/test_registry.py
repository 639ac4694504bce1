"""The registry of ledgers in order of names, in memory and where it is stored."""

from __future__ import annotations

import pytest

from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.memory import MemoryState
from millrace.ledger.domain.names import Ledger
from millrace.operators.adapters.registry import DynamoRegistry, MemoryRegistry
from millrace.operators.ports import LedgerNames
from tests.contract.conftest import Adapters

NAMES = sorted([*(f"catalog#t#d{number}" for number in range(40)), "catalog#t#é", "catalog#t#日本", "sync#t#p"])
END = "\U0010ffff"


@pytest.fixture
def registry(adapters: Adapters) -> LedgerNames:
    for name in NAMES:
        adapters.state.register(Ledger.to_read(name))
    if isinstance(adapters.state, DynamoState):
        return DynamoRegistry(adapters.state.client, adapters.state.table, adapters.together)
    assert isinstance(adapters.state, MemoryState)
    return MemoryRegistry(adapters.state)


@pytest.mark.parametrize("limit", [1, 3, 16, 42, 100])
def test_pages_have_every_name_of_a_range_once_and_in_order(registry: LedgerNames, limit: int) -> None:
    wanted = [name for name in NAMES if name.startswith("catalog#t#")]
    found: list[str] = []
    first = "catalog#t#"
    while page := registry.page(first, f"catalog#t#{END}", limit):
        found += page
        first = page[-1] + "\x00"
    assert found == wanted


def test_a_range_of_one_name_has_it_or_nothing(registry: LedgerNames) -> None:
    assert list(registry.page("sync#t#p", "sync#t#p", 10)) == ["sync#t#p"]
    assert list(registry.page("sync#t#q", "sync#t#q", 10)) == []
