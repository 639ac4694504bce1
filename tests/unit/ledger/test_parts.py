"""Parts of a page and receipts come back as they went in, and stay small."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.ledger.domain import receipts
from millrace.ledger.domain.packing import pack_parts, unpack_parts
from millrace.ledger.domain.page import Draft, Origin, Page, Part, Record
from millrace.ledger.domain.waiting import Placing, Receipt, Waiting, receipt_of

nonces = st.binary(min_size=1, max_size=12)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
parts = st.lists(
    st.builds(Part, count=st.integers(1, 1024), origin=st.builds(Origin, texts, texts), nonce=nonces), max_size=9
)


@given(parts)
def test_parts_come_back_as_they_went_in_and_weigh_at_least_what_they_take(given_parts: list[Part]) -> None:
    packed = pack_parts(given_parts)
    assert list(unpack_parts(packed)) == given_parts
    assert len(packed) <= 4 + sum(part.weight for part in given_parts)


@st.composite
def posted(draw: st.DrawFn) -> Receipt:
    end = draw(st.integers(1_024, 10**12))
    placings = st.builds(
        Placing, st.integers(0, 9_999), st.integers(1, 1_024), st.integers(0, 1_023).map(lambda below: end - below)
    )
    placed = draw(st.dictionaries(nonces, st.lists(placings, min_size=1, max_size=300), max_size=4))
    return Receipt(end, draw(st.integers(0, 10**13)), placed, frozenset(draw(st.sets(nonces, max_size=3))))


@settings(max_examples=30)
@given(st.lists(posted(), max_size=5))
def test_receipts_come_back_as_they_went_in(given_receipts: list[Receipt]) -> None:
    assert receipts.unpack(receipts.pack(given_receipts)) == given_receipts


@settings(max_examples=30)
@given(st.lists(posted(), max_size=9))
def test_the_newest_receipts_stay_and_never_fewer_than_three(given_receipts: list[Receipt]) -> None:
    kept = receipts.latest(given_receipts)
    assert kept == given_receipts[len(given_receipts) - len(kept) :]
    assert len(kept) >= min(len(given_receipts), receipts.LEAST_KEPT)
    assert len(kept) <= receipts.LEAST_KEPT or len(receipts.pack(kept)) <= receipts.MOST_BYTES + 1


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=8), min_size=1, max_size=5))
def test_a_receipt_names_the_position_of_each_draft_that_its_page_holds(chosen: list[list[bool]]) -> None:
    """`chosen`: of each request, which of its drafts went into the page."""
    requests: dict[bytes, Waiting] = {}
    records, page_parts = list[Record](), list[Part]()
    for number, taken in enumerate(chosen):
        drafts = tuple(Draft(f"{number}-{index}", bytes(17), b"{}") for index in range(len(taken)))
        nonce = b"%d" % number
        requests[nonce] = Waiting(nonce, drafts, 0, Origin("c"), False, 0, 1)
        own = [draft for draft, is_in in zip(drafts, taken, strict=True) if is_in]
        records += [Record(draft.id, draft.digest, draft.body) for draft in own]
        if own:
            page_parts.append(Part(len(own), Origin("c"), nonce))
    page = Page(41, tuple(records), 5, Origin("c"), b"page", parts=tuple(page_parts))
    receipt = receipt_of(page, requests)
    assert {
        (requests[nonce].drafts[placing.start + step].id, placing.position + step)
        for nonce, placings in receipt.placed.items()
        for placing in placings
        for step in range(placing.count)
    } == {(event.record.id, event.position) for event in page.events()}
