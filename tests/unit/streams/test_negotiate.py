"""T5, T10: what a runtime and the hub agree on."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from millrace.streams.domain.errors import ContractIncompatible, InvalidArgument
from millrace.streams.domain.negotiate import CAPABILITIES, Negotiated, StreamLimits, negotiate
from tests.unit.streams.hub import odd

BASE = {"supported_contract_versions": [1, 2, 3]}
CANARY = "canary-91"


def limits(**overrides: Any) -> StreamLimits:
    return negotiate({**BASE, "limits": overrides}).limits


def test_the_answer_has_all_that_the_contract_names() -> None:
    """T5."""
    asked = {**BASE, "requested_capabilities": ["sdk.capability.receipt_terminality", "x.y.z"]}
    assert negotiate(asked).answer("r1") == {
        "runtime_id": "r1",
        "active_contract_version": 2,
        "effective_capabilities": ["sdk.capability.receipt_terminality"],
        "effective_limits": {
            "max_poll_events": 256,
            "max_event_bytes": 65_536,
            "max_batch_bytes": 1_048_576,
            "max_extension_keys": 32,
        },
        "contract_release": "v2.5",
        "schema_namespace": "v2",
    }


@pytest.mark.parametrize(
    ("profile", "poll", "event"),
    [("desktop-full", 256, 65_536), ("desktop-local-runtime", 64, 32_768), ("embedded-alloc", 32, 8_192)],
)
def test_a_profile_has_its_limits(profile: str, poll: int, event: int) -> None:
    """T10."""
    assert negotiate({**BASE, "profile": profile}).limits == StreamLimits(poll, event, 1_048_576, 32)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("max_poll_events", 1, 10_000),
        ("max_event_bytes", 256, 65_536),
        ("max_batch_bytes", 65_536, 1_048_576),
        ("max_extension_keys", 0, 32),
    ],
)
def test_a_limit_is_taken_within_its_range_and_refused_just_outside(name: str, low: int, high: int) -> None:
    """T10."""
    for good in (low, high):
        assert asdict(limits(**{name: good}))[name] == good
    for bad in odd(low - 1, high + 1, True, float(low), str(low), [], {}):
        with pytest.raises(InvalidArgument) as refusal:
            limits(**{name: bad})
        assert refusal.value.details["field"] == f"limits.{name}"


def test_a_batch_must_hold_the_largest_payload() -> None:
    """T10: `max_batch_bytes` goes down to `max_event_bytes`, whichever way that was chosen."""
    assert limits(max_event_bytes=256, max_batch_bytes=256).max_batch_bytes == 256
    small = {**BASE, "profile": "embedded-alloc"}
    assert negotiate({**small, "limits": {"max_batch_bytes": 8_192}}).limits.max_batch_bytes == 8_192
    for asked in ({"max_batch_bytes": 8_191}, {"max_event_bytes": 10_000, "max_batch_bytes": 9_999}):
        with pytest.raises(InvalidArgument):
            negotiate({**small, "limits": asked})


def test_an_override_may_exceed_the_profiles_own_limit() -> None:
    """T10: profiles differ in their defaults alone."""
    asked = {**BASE, "profile": "embedded-alloc", "limits": {"max_poll_events": 10_000, "max_event_bytes": 65_536}}
    assert negotiate(asked).limits == StreamLimits(10_000, 65_536, 1_048_576, 32)


@pytest.mark.parametrize("versions", [[1], [3, 4], [0], [-2], [20]])
def test_without_a_common_version_it_is_incompatible(versions: list[int]) -> None:
    """T5."""
    with pytest.raises(ContractIncompatible) as refusal:
        negotiate({"supported_contract_versions": versions})
    body = refusal.value.body()
    assert (body["machine_code"], body["category"]) == ("SDK_CAPABILITY_CONTRACT_INCOMPATIBLE", "Capability")
    assert body["details"] == {"supported_contract_versions": [2]}


def test_unknown_capabilities_are_dropped_and_known_ones_kept_once() -> None:
    """T5."""
    asked = {**BASE, "requested_capabilities": ["", "x", *sorted(CAPABILITIES), *CAPABILITIES]}
    assert negotiate(asked).capabilities == tuple(sorted(CAPABILITIES))
    assert negotiate(BASE).capabilities == ()


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (None, "body"),
        ([], "body"),
        (CANARY, "body"),
        ({}, "supported_contract_versions"),
        ({"supported_contract_versions": []}, "supported_contract_versions"),
        ({"supported_contract_versions": 2}, "supported_contract_versions"),
        ({"supported_contract_versions": [True]}, "supported_contract_versions"),
        ({"supported_contract_versions": [2, CANARY]}, "supported_contract_versions"),
        ({"supported_contract_versions": [2] * 65}, "supported_contract_versions"),
        ({**BASE, "requested_capabilities": CANARY}, "requested_capabilities"),
        ({**BASE, "requested_capabilities": [1]}, "requested_capabilities"),
        ({**BASE, "requested_capabilities": ["x"] * 65}, "requested_capabilities"),
        ({**BASE, "profile": CANARY}, "profile"),
        ({**BASE, "profile": ["desktop-full"]}, "profile"),
        ({**BASE, "limits": [CANARY]}, "limits"),
        ({**BASE, "limits": {"max_events": CANARY}}, "limits.max_events"),
        ({**BASE, "limits": {"max_poll_events": CANARY}}, "limits.max_poll_events"),
        ({**BASE, "capabilities": [CANARY]}, "capabilities"),
    ],
)
def test_a_bad_request_names_its_field_and_no_value(asked: Any, field: str) -> None:
    """T5, T12."""
    with pytest.raises(InvalidArgument) as refusal:
        negotiate(asked)
    assert refusal.value.details["field"] == field
    assert "value_class" in refusal.value.details
    assert CANARY not in json.dumps(refusal.value.body())


def test_what_is_null_counts_as_left_out() -> None:
    """T5: of the request and of its limits."""
    nulls = {"requested_capabilities": None, "profile": None, "limits": None}
    assert negotiate({**BASE, **nulls}) == negotiate(BASE)
    limits_of_none = dict.fromkeys(asdict(negotiate(BASE).limits))
    assert negotiate({**BASE, "limits": {**limits_of_none, "max_poll_events": 7}}) == negotiate(
        {**BASE, "limits": {"max_poll_events": 7}}
    )
    with pytest.raises(InvalidArgument):
        negotiate({"supported_contract_versions": None})


def test_what_was_negotiated_survives_its_storage() -> None:
    """T5."""
    made = negotiate({**BASE, "requested_capabilities": sorted(CAPABILITIES), "limits": {"max_poll_events": 7}})
    assert Negotiated.of(json.loads(json.dumps(made.stored()))) == made
