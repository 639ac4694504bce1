"""Packing keeps every record, with and without bodies, and saves write units where it can."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.ledger.domain.canonical import DIGEST_BYTES, canonical, digest
from millrace.ledger.domain.packing import DEFLATED, RAW, pack, unpack
from millrace.ledger.domain.page import RECORD_OVERHEAD, Draft, Origin, Page, Record

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
records = st.builds(
    Record,
    id=names,
    digest=st.binary(min_size=DIGEST_BYTES, max_size=DIGEST_BYTES),
    body=st.none() | st.binary(max_size=300),
    partitions=st.lists(names, max_size=5, unique=True).map(tuple),
)


@given(st.lists(records, max_size=30))
def test_records_come_back_as_they_went_in(page: list[Record]) -> None:
    assert list(unpack(pack(page))) == page


def test_a_full_page_with_64_partitions_each_comes_back() -> None:
    page = [Record(f"e{n}", bytes(17), b"{}", tuple(f"p{n}-{m}" for m in range(64))) for n in range(100)]
    assert list(unpack(pack(page))) == page


def test_a_page_is_deflated_only_when_that_saves_a_write_unit() -> None:
    repetitive = [Record(f"e{n}", bytes(17), b'{"event":"the same thing again and again"}' * 4) for n in range(25)]
    assert pack(repetitive)[:1] == DEFLATED
    assert pack(repetitive[:1])[:1] == RAW


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown page format"):
        unpack(b"\x09abc")


@given(st.lists(names, min_size=1, max_size=6, unique=True), st.binary(max_size=2000))
def test_a_draft_never_weighs_less_than_it_packs_to(partitions: list[str], body: bytes) -> None:
    draft = Draft("some-id", bytes(DIGEST_BYTES), body, tuple(partitions))
    packed = pack([Record(draft.id, draft.digest, draft.body, draft.partitions)], overhead=0)
    assert len(packed) <= draft.weight


def test_packing_adds_at_most_100_bytes_to_an_event() -> None:
    body = canonical({"event": {"type": "t", "payload": "x" * 400}})
    record = Record("0190a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b", digest(body), body, ("team/a",))
    page = [record] * 25
    assert (len(pack(page, overhead=0)) - 25 * len(body)) / 25 <= 100 or pack(page)[:1] == DEFLATED
    assert RECORD_OVERHEAD + len(record.id) <= 100


def test_an_emptied_page_keeps_ids_digests_partitions_and_positions() -> None:
    page = Page(7, (Record("a", b"1" * 17, b"{}", ("p",)), Record("b", b"2" * 17, b"{}", ("q",))), 1, Origin("c"), b"n")
    emptied = page.emptied([7])
    assert emptied.records == (Record("a", b"1" * 17, None, ("p",)), Record("b", b"2" * 17, b"{}", ("q",)))
    assert (emptied.first, emptied.end, emptied.revision) == (7, 8, 1)
