"""Bad input at the door: refused with a reason, before anything is stored."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.ledger.domain.errors import BadRequest, TooLarge
from millrace.ledger.domain.strict_json import MAX_DEPTH, MAX_MARKS, parse

ROOM = 1_000_000


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"{'a': 1}", "not JSON"),
        (b'{"a": 1} x', "not JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": Infinity}', "Infinity is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": 1e400}', "too large for a double"),
        (b'{"a": -1e400}', "too large for a double"),
        (b'{"a": ' + b"9" * 5000 + b"}", "more than 4300 digits"),
        (b'{"a": 1, "a": 2}', "same key twice"),
        (b'{"x": [{"a": 1, "\\u0061": 2}]}', "same key twice"),
        (b'{"a": "\\ud800"}', "lone surrogate"),
        (b'{"\\udfff": 1}', "lone surrogate"),
        (b'"\\ud83dx\\ude00"', "lone surrogate"),
        (b"[" * 65 + b"]" * 65, "deeper than 64"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "deeper than 64"),
        (b"[" * 100_000 + b"]" * 100_000, "deeper than 64"),
        (b"[" * 200_000, "not JSON|deeper"),
    ],
)
def test_what_is_ambiguous_or_cannot_be_kept_is_refused(body: bytes, says: str) -> None:
    with pytest.raises(BadRequest, match=says) as caught:
        parse(body, ROOM)
    assert caught.value.details["field"] == "body"


def test_the_size_is_checked_before_anything_is_parsed() -> None:
    with pytest.raises(TooLarge) as caught:
        parse(b"{" * 11, 10)
    assert caught.value.details == {"field": "body", "max_bytes": 10, "actual_bytes": 11}


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, None),
        (b'{"a": "]]]][[[[{{{{"}', {"a": "]]]][[[[{{{{"}),
        (b'{"a": "\\"[[\\\\"}', {"a": '"[[\\'}),
        (b'"\\ud83d\\ude00"', "😀"),
        (b'{"big": 123456789012345678901234567890}', {"big": 123456789012345678901234567890}),
        (b"1e308", 1e308),
    ],
)
def test_what_is_unusual_but_clear_is_taken(body: bytes, value: Any) -> None:
    parsed = parse(body, ROOM)
    assert value is None or parsed == value


strings = st.text(st.characters(exclude_categories=["Cs"]))
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | strings


@given(
    st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(strings, inner), max_leaves=40), st.booleans()
)
def test_all_clear_json_comes_through_unchanged(value: Any, escaped: bool) -> None:
    assert parse(json.dumps(value, ensure_ascii=escaped).encode(), ROOM) == value


@given(st.binary(max_size=60))
def test_no_bytes_make_it_fail_in_another_way(body: bytes) -> None:
    with suppress(BadRequest):
        parse(body, ROOM)


@pytest.mark.parametrize("tiny", [b"[],", b"1,", b'{"a":1},'])
def test_millions_of_tiny_values_are_refused_before_they_are_parsed(tiny: bytes) -> None:
    """A few kilobytes of gzip unpack to this."""
    body = b"[" + tiny * (MAX_MARKS + 1) + b"1]"
    with pytest.raises(TooLarge) as refused:
        parse(body, len(body))
    assert refused.value.details["max_marks"] == MAX_MARKS


def test_a_long_text_is_not_many_values() -> None:
    body = b'["' + b"x" * (2 * MAX_MARKS) + b'"]'
    assert len(parse(body, len(body))[0]) == 2 * MAX_MARKS
