"""C5: the registry says which versions are known, which defaults stand in, and refuses what it does not understand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millrace.domain.errors import BadRequest
from millrace.domain.registry import FALLBACK, QUARANTINE, REJECT, WRAPPED, Known, Registry

CONTENT = {
    "policy": "reject",
    "types": {"order.placed": {"versions": {"1": {"a": 1}, "3": {"a": 3}}, "policy": "fallback"}},
    "contracts": {"streams": {"versions": {"2": {}, "3": {}}}},
}


def test_a_registry_is_read_from_json() -> None:
    registry = Registry.parse(json.dumps(CONTENT).encode())
    assert registry.policy == REJECT
    assert registry.types == {"order.placed": Known({1: {"a": 1}, 3: {"a": 3}}, FALLBACK)}
    assert registry.contracts["streams"] == Known({2: {}, 3: {}}, REJECT)
    assert registry.contracts["sync"] == WRAPPED["sync"]


def test_a_contract_s_prefix_counts_only_in_its_own_ledgers() -> None:
    registry = Registry()
    assert registry.find("sync", "sync.set")
    assert registry.find("catalog", "sync.set") is None
    assert registry.find("sync", "order.placed") is None
    assert registry.policy == QUARANTINE


@pytest.mark.parametrize(("version", "default"), [(1, 1), (2, 1), (3, 3), (9, 3)])
def test_an_unknown_version_takes_the_defaults_of_the_nearest_below(version: int, default: int) -> None:
    assert Known({1: {"a": 1}, 3: {"a": 3}}).defaults(version) == {"a": default}
    assert Known({2: {"a": 2}}).defaults(1) == {"a": 2}
    assert Known().defaults(version) == {}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"policy": "ignore"}, "policy"),
        ({"surprise": 1}, "registry.surprise"),
        ({"types": []}, "types"),
        ({"types": {"a": {}}}, "types.a.versions"),
        ({"types": {"a": {"versions": {"0": {}}}}}, "types.a.versions"),
        ({"types": {"a": {"versions": {"one": {}}}}}, "types.a.versions"),
        ({"types": {"a": {"versions": {"1": []}}}}, "types.a.versions.1"),
        ({"types": {"a": {"versions": {"1": {}}, "policy": 5}}}, "types.a.policy"),
    ],
)
def test_a_registry_that_makes_no_sense_is_refused_with_the_place(change: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        Registry.parse(json.dumps({**CONTENT, **change}).encode())
    assert refused.value.details["field"] == field


def test_a_registry_that_is_not_json_is_refused() -> None:
    with pytest.raises(BadRequest, match="not JSON"):
        Registry.parse(b"{")
