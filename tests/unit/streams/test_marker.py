"""M2–M5: what a marker request may say, and the event a change becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millrace.streams.domain.errors import InvalidArgument, MaxExtensionKeysExceeded
from millrace.streams.domain.marker import (
    CREATED,
    check_create,
    check_marker_id,
    check_move,
    check_position,
    check_revision,
    marker_event,
    stale,
)
from millrace.streams.domain.negotiate import StreamLimits
from tests.unit.streams.hub import odd

LIMITS = StreamLimits(10, 256, 1_024, 2)
CANARY = "canary-m"
HERE = {"lat": 52.5, "lon": 13.4}
GOOD = {"label": "Depot", "position": HERE}


def test_a_marker_passes_with_every_field_the_contract_names() -> None:
    """M4."""
    sent = {
        **GOOD,
        "marker_id": "m-1",
        "topic_id": "t",
        "position": {**HERE, "alt_m": -3},
        "extensions": {"a": [1], "b": {"c": None}},
    }
    assert check_create(sent, LIMITS) == sent


def test_what_is_null_is_left_out() -> None:
    """M4."""
    sent = {**GOOD, "marker_id": None, "topic_id": None, "extensions": None, "position": {**HERE, "alt_m": None}}
    assert check_create(sent, LIMITS) == GOOD


@pytest.mark.parametrize(
    "position", [{"lat": lat, "lon": lon} for lat in (-90, 0, 90.0) for lon in (-180.0, 0, 180)], ids=str
)
def test_the_whole_earth_is_there(position: dict[str, Any]) -> None:
    """M4."""
    assert check_position(position) == position
    for alt in (-1_000_000_000, 0.5, 1_000_000_000):
        assert check_position({**position, "alt_m": alt})["alt_m"] == alt


BAD_POSITIONS: list[tuple[Any, str]] = [
    *((bad, "position") for bad in odd(None, [], CANARY, 1)),
    *(
        ({"lon": 1, **({} if bad is None else {"lat": bad})}, "position.lat")
        for bad in odd(None, 90.01, -91, "1", True, [])
    ),
    *(
        ({"lat": 1, **({} if bad is None else {"lon": bad})}, "position.lon")
        for bad in odd(None, 180.5, -181, CANARY, {})
    ),
    *(({**HERE, "alt_m": bad}, "position.alt_m") for bad in odd(10**9 + 1, -(10**10), "5", False, [CANARY])),
    ({**HERE, "alt": CANARY}, "position.alt"),
]


@pytest.mark.parametrize(("position", "field"), BAD_POSITIONS, ids=str)
def test_a_position_off_the_earth_is_refused_by_its_field(position: Any, field: str) -> None:
    """M4, T12."""
    for check in (
        lambda: check_create({**GOOD, "position": position}, LIMITS),
        lambda: check_move({"position": position, "expected_revision": 1}, LIMITS),
    ):
        with pytest.raises(InvalidArgument) as refusal:
            check()
        assert refusal.value.details["field"] == field
        assert CANARY not in json.dumps(refusal.value.body())


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        *((bad, "body") for bad in odd(None, [], CANARY)),
        ({"position": HERE}, "label"),
        *(({**GOOD, "label": bad}, "label") for bad in odd("", " ", None, 1, [CANARY], "x" * 257)),
        *(({**GOOD, "topic_id": bad}, "topic_id") for bad in odd("", 1, [CANARY], "x" * 129)),
        *(({**GOOD, "extensions": bad}, "extensions") for bad in odd([], CANARY, 0, False)),
        ({**GOOD, "revision": 1}, "revision"),
        ({**GOOD, "updated_ts_ms": 1}, "updated_ts_ms"),
    ],
    ids=str,
)
def test_a_bad_marker_is_refused_by_its_field(sent: Any, field: str) -> None:
    """M4, T12."""
    with pytest.raises(InvalidArgument) as refusal:
        check_create(sent, LIMITS)
    assert refusal.value.details["field"] == field
    assert CANARY not in json.dumps(refusal.value.body())


def test_a_markers_extensions_have_the_runtimes_limit() -> None:
    """T10."""
    assert check_create({**GOOD, "extensions": {"a": 1, "b": 2}}, LIMITS)
    with pytest.raises(MaxExtensionKeysExceeded):
        check_create({**GOOD, "extensions": {"a": 1, "b": 2, "c": CANARY}}, LIMITS)


@pytest.mark.parametrize("good", ["a", "Z9", "0", "a.b_c~d:e@f+g-h", "x" * 128])
def test_a_marker_id_can_stand_in_a_path(good: str) -> None:
    """M3."""
    assert check_marker_id(good) == good


@pytest.mark.parametrize(
    "bad", ["", " ", "-a", ".", "..", "a/b", "a b", "ä", "a%20", "a#", "a?", "x" * 129, "a\n", None, 1]
)
def test_a_marker_id_that_a_path_cannot_carry_is_refused(bad: Any) -> None:
    """M3."""
    with pytest.raises(InvalidArgument) as refusal:
        check_marker_id(bad)
    assert refusal.value.details["field"] == "marker_id"


@pytest.mark.parametrize("bad", [0, -1, None, True, 1.0, "1", [1], 2**53])
def test_a_write_needs_an_expected_revision_of_at_least_1(bad: Any) -> None:
    """M2."""
    assert check_revision(1) == 1
    sent = {"position": HERE, "expected_revision": bad}
    for check in (lambda: check_revision(bad), lambda: check_move(sent, LIMITS)):
        with pytest.raises(InvalidArgument) as refusal:
            check()
        assert refusal.value.details["field"] == "expected_revision"


def test_a_move_takes_position_and_revision_and_nothing_else() -> None:
    """M2."""
    assert check_move({"position": HERE, "expected_revision": 3}, LIMITS) == ({"position": HERE}, 3)
    for sent, field in (({}, "position"), ({"position": HERE, "expected_revision": 1, "label": CANARY}, "label")):
        with pytest.raises(InvalidArgument) as refusal:
            check_move(sent, LIMITS)
        assert refusal.value.details["field"] == field


def test_a_stale_write_is_told_both_revisions() -> None:
    """M3."""
    error = stale("m", 2, 5)
    assert error.code == "SDK_RUNTIME_CONFLICT"
    assert error.details == {"domain": "marker", "marker_id": "m", "expected_revision": 2, "observed_revision": 5}


def test_a_change_is_an_extension_event_named_by_marker_and_revision() -> None:
    """M5."""
    record = {"marker_id": "m-1", "revision": 7, "updated_ts_ms": 99, **GOOD}
    event = marker_event("r1", CREATED, record)
    assert event == {
        "event_id": "marker-m-1-7",
        "runtime_id": "r1",
        "stream_id": "markers",
        "contract_version": 2,
        "ts_ms": 99,
        "event_type": "ExtensionEvent",
        "severity": "info",
        "source_component": "millrace",
        "payload": {"extension_event_type": "sdk.marker.created", "marker": record},
    }
