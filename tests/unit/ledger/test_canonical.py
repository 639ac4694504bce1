"""Canonical JSON is RFC 8785, except that integers stay exact."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from millrace.ledger.domain.canonical import DIGEST_BYTES, canonical, digest

safe_integers = st.integers(-(2**53) + 1, 2**53 - 1)
leaves = st.none() | st.booleans() | safe_integers | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


@given(values)
def test_it_writes_what_rfc_8785_writes(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(st.integers(0, 2**64 - 1))
def test_every_double_is_written_as_ecmascript_writes_it(bits: int) -> None:
    (number,) = struct.unpack("<d", struct.pack("<Q", bits))
    if number == number and abs(number) != float("inf"):
        assert canonical([number]) == rfc8785.dumps([number])


@given(values)
def test_what_was_stored_canonically_is_canonical_again(value: Any) -> None:
    assert canonical(json.loads(canonical(value))) == canonical(value)


@pytest.mark.parametrize("number", [2**53, 2**53 + 1, -(10**40), 10**21])
def test_integers_stay_exact_at_any_size(number: int) -> None:
    assert canonical({"n": number}) == b'{"n":%d}' % number


def test_keys_are_sorted_by_utf_16_code_units() -> None:
    written = canonical({"\ufb33": 1, "\U0001f600": 2, "\u20ac": 3, "a": 4}).decode()
    assert written == '{"a":4,"\u20ac":3,"\U0001f600":2,"\ufb33":1}'


def test_nan_has_no_canonical_form() -> None:
    with pytest.raises(ValueError, match="NaN"):
        canonical([float("nan")])


def test_a_digest_carries_its_version() -> None:
    assert digest(b"x")[:1] == b"\x01"
    assert len(digest(b"x")) == DIGEST_BYTES
    assert digest(b"x") != digest(b"y")
