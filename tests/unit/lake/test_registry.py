"""C5: the registry says which versions are known, which defaults stand in, and refuses what it does not understand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millrace.lake.domain.catalog import MAX_VERSION
from millrace.lake.domain.registry import FALLBACK, MAX_BYTES, QUARANTINE, REJECT, WRAPPED, Known, Registry
from millrace.ledger.domain.errors import BadRequest

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
        ({"types": {"a": {"versions": {"1": {}}, "policy": ["reject"]}}}, "types.a.policy"),
        ({"types": {"a": {"versions": {"03": {}}}}}, "types.a.versions"),
        ({"types": {"a": {"versions": {"3": {}, "03": {}}}}}, "types.a.versions"),
        ({"types": {"a": {"versions": {"٣": {}}}}}, "types.a.versions"),
        ({"types": {"a": {"versions": {"1\n": {}}}}}, "types.a.versions"),
        ({"types": {"a": {"versions": {str(MAX_VERSION + 1): {}}}}}, "types.a.versions"),
        ({"types": {"a": {"versions": {"9" * 20: {}}}}}, "types.a.versions"),
        ({"types": {"a": {"versions": {"9" * 5_000: {}}}}}, "types.a.versions"),
        ({"contracts": {"catalog": {"policy": "fallback"}}}, "contracts.catalog"),
    ],
)
def test_a_registry_that_makes_no_sense_is_refused_with_the_place(change: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        Registry.parse(json.dumps({**CONTENT, **change}).encode())
    assert refused.value.details["field"] == field


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"{", "It is not JSON"),
        (b"\xff", "It is not valid UTF-8"),
        (b"[" * 100_000, "It nests deeper"),
        (b'{"types":' + b"9" * 5_000 + b"}", "digits"),
        (b'{"types": {"a": {"versions": {"1": {"x": NaN}}}}}', "NaN"),
        (b'{"types": {"a": {"versions": {"1": {"x": [-Infinity]}}}}}', "Infinity"),
        (b'{"types": {"a": {"versions": {"1": {"x": "\\ud800"}}}}}', "lone surrogate"),
        (b'{"types": {"\\ud800": {"versions": {"1": {}}}}}', "lone surrogate"),
        (b'{"types": {"a": {"versions": {"1": {"x": 1}, "1": {"x": 2}}}}}', "the same key twice"),
        (b" " * (MAX_BYTES + 1), "larger than the limit"),
    ],
    ids=["cut", "bytes", "deep", "digits", "nan", "infinity", "surrogate", "name", "twice", "large"],
)
def test_what_is_not_plain_json_is_refused(text: bytes, told: str) -> None:
    """C5: a run could not use it, or nobody knows which of two was meant."""
    with pytest.raises(BadRequest, match=told) as refused:
        Registry.parse(text)
    assert refused.value.details["field"] == "registry"


def test_the_catalog_s_types_are_not_registered_by_prefix() -> None:
    """C5: the error says where they belong."""
    with pytest.raises(BadRequest, match="under types"):
        Registry.parse(b'{"contracts": {"catalog": {}}}')


def test_the_highest_version_that_an_event_can_have_is_known() -> None:
    """C5."""
    registry = Registry.parse(json.dumps({"types": {"a": {"versions": {str(MAX_VERSION): {"x": 1.5}}}}}).encode())
    assert registry.types["a"].defaults(MAX_VERSION) == {"x": 1.5}
