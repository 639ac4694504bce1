from __future__ import annotations

from dataclasses import replace

from millrace.ledger.application.heads import find_head
from millrace.ledger.domain.canonical import digest
from millrace.ledger.domain.names import BUCKET, Ledger
from millrace.ledger.domain.page import Origin, Page, Part, Record
from tests.contract.conftest import Adapters

LEDGER = Ledger.of("sync", "default", "demo")
CALL = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def page(first: int, count: int = 1, nonce: bytes = b"n", size: int = 10) -> Page:
    records = tuple(
        Record(f"e{first + n}", digest(b"%d" % (first + n)), b'{"x":"' + b"y" * size + b'"}', ("a", "b"))
        for n in range(count)
    )
    return Page(first, records, 1_700_000_000_000, Origin("client", "connection"), nonce)


def test_a_page_is_created_once_and_the_loser_gets_the_winner(adapters: Adapters) -> None:
    winner, loser = page(1, 3, b"w"), page(1, 2, b"l")
    assert adapters.log.append(LEDGER, winner) is None
    assert adapters.log.append(LEDGER, loser) == winner
    assert adapters.log.read(LEDGER, 0).pages == [winner]


def test_a_writer_that_lost_its_answer_is_handed_its_own_page(adapters: Adapters) -> None:
    mine = page(1)
    adapters.log.append(LEDGER, mine)
    again = adapters.log.append(LEDGER, mine)
    assert again is not None
    assert again.nonce == mine.nonce


def test_a_page_comes_back_as_it_was_put(adapters: Adapters) -> None:
    for put in (page(1, 30, size=200), replace(page(31), origin=Origin("c"))):
        adapters.log.append(LEDGER, put)
        assert adapters.log.holding(LEDGER, put.first) == put


def test_a_page_comes_back_with_the_calls_that_its_requests_belonged_to(adapters: Adapters) -> None:
    alone = replace(page(1), origin=Origin("client", trace=CALL))
    parts = (Part(2, Origin("client", "connection"), b"1"), Part(1, Origin("other", trace=CALL), b"2"))
    shared = replace(page(2, 3), parts=parts)
    for put in (alone, shared):
        adapters.log.append(LEDGER, put)
        assert adapters.log.holding(LEDGER, put.first) == put
        assert adapters.log.replace(LEDGER, put.emptied([put.first]))
        assert adapters.log.holding(LEDGER, put.first) == put.emptied([put.first])


def test_reads_are_in_order_bounded_and_stay_in_their_bucket(adapters: Adapters) -> None:
    pages = [page(1, 4), page(5), page(6, 2), page(BUCKET + 1)]
    for each in pages:
        adapters.log.append(LEDGER, each)
    assert adapters.log.read(LEDGER, 0).pages == pages[:3]
    assert adapters.log.read(LEDGER, 4).pages == pages[1:3]
    limited = adapters.log.read(LEDGER, 0, 2)
    assert (limited.pages, limited.more) == (pages[:2], True)
    assert adapters.log.read(LEDGER, BUCKET).pages == pages[3:]
    assert adapters.log.read(LEDGER, 7).pages == []
    assert not adapters.log.read(LEDGER, 0).more


def test_a_read_ends_with_the_last_page_that_starts_at_its_bound(adapters: Adapters) -> None:
    pages = [page(1, 4), page(5), page(6, 2), page(BUCKET + 1)]
    for each in pages:
        adapters.log.append(LEDGER, each)
    for through, found in ((1, 1), (4, 1), (5, 2), (6, 3), (BUCKET + 1, 3)):
        run = adapters.log.read(LEDGER, 0, through=through)
        assert (run.pages, run.more) == (pages[:found], False)
    assert adapters.log.read(LEDGER, 4, 1, 6).pages == pages[1:2]
    assert adapters.log.read(LEDGER, 5, through=5).pages == []


def test_the_page_of_a_position_is_the_last_that_starts_at_or_below_it(adapters: Adapters) -> None:
    pages = [page(1, 4), page(5, 3)]
    for each in pages:
        adapters.log.append(LEDGER, each)
    assert [adapters.log.holding(LEDGER, p) for p in (1, 4, 5, 7, 8)] == [pages[0]] * 2 + [pages[1]] * 3
    assert adapters.log.holding(LEDGER, BUCKET + 1) is None


def test_pages_are_got_by_their_first_positions(adapters: Adapters) -> None:
    pages = [page(n) for n in range(1, 131)]
    for each in pages:
        adapters.log.append(LEDGER, each)
    assert adapters.log.get(LEDGER, range(1, 131)) == {each.first: each for each in pages}
    assert adapters.log.get(LEDGER, [500]) == {}


def test_a_page_is_replaced_only_at_the_revision_that_was_read(adapters: Adapters) -> None:
    adapters.log.append(LEDGER, page(1, 2))
    once = page(1, 2).emptied([1])
    assert adapters.log.replace(LEDGER, once)
    assert not adapters.log.replace(LEDGER, page(1, 2).emptied([2]))
    assert adapters.log.replace(LEDGER, once.emptied([2]))
    stored = adapters.log.read(LEDGER, 0).pages[0]
    assert [record.body for record in stored.records] == [None, None]
    assert not adapters.log.replace(LEDGER, page(9).emptied([9]))


def test_an_emptied_page_still_holds_its_position(adapters: Adapters) -> None:
    adapters.log.append(LEDGER, page(1))
    adapters.log.replace(LEDGER, page(1).emptied([1]))
    assert adapters.log.append(LEDGER, page(1, nonce=b"z")) is not None


def test_ledgers_do_not_see_each_other(adapters: Adapters) -> None:
    adapters.log.append(LEDGER, page(1))
    assert adapters.log.read(Ledger.of("sync", "default", "demo#0"), 0).pages == []
    assert adapters.log.read(Ledger.of("sync", "default", "dem"), 0).pages == []


def test_the_head_is_found_from_any_page_end_below_it(adapters: Adapters) -> None:
    """Full buckets are needed only where the search passes: it probes buckets, not positions."""
    for bucket in range(7):
        for first in range(bucket * BUCKET + 1, (bucket + 1) * BUCKET, 512):
            adapters.log.append(LEDGER, page(first, 512, size=1))
    adapters.log.append(LEDGER, page(7 * BUCKET + 1, 5))
    head = 7 * BUCKET + 5
    for hint in (0, 512, BUCKET, 3 * BUCKET, 6 * BUCKET + 512, 7 * BUCKET, head):
        assert find_head(adapters.log, LEDGER, hint) == head
    assert find_head(adapters.log, Ledger.of("x", "y"), 0) == 0
