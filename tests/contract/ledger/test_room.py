"""The waiting room and the board of a busy ledger, on every adapter."""

from __future__ import annotations

from dataclasses import replace

from millrace.ledger.domain.canonical import DIGEST_BYTES
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Origin
from millrace.ledger.domain.waiting import LONGEST_LEASE_MS, Notice, Placing, Receipt, Waiting
from tests.contract.conftest import Adapters

LEDGER, OTHER = Ledger.of("sync", "default", "busy"), Ledger.of("sync", "default", "calm")
NOW = 1_700_000_000_000


def request(number: int) -> Waiting:
    drafts = (
        Draft(f"a{number}", b"a" * DIGEST_BYTES, b'{"n":1}', ("p", "q")),
        Draft(f"b{number}", b"b" * DIGEST_BYTES, b"{}"),
    )
    nonce = number.to_bytes(12, "big")
    return Waiting(nonce, drafts, 7, Origin("client", "connection"), number % 2 == 0, NOW, NOW + 6_500)


def waiting(adapters: Adapters, ledger: Ledger = LEDGER) -> dict[bytes, Waiting]:
    return {row.nonce: row for row in adapters.room.look(ledger)}


def test_whoever_waits_is_found_with_everything_it_left(adapters: Adapters) -> None:
    rows = [request(number) for number in range(9)]
    for row in rows:
        adapters.room.leave(LEDGER, row)
    assert waiting(adapters) == {row.nonce: row for row in rows}


def test_a_request_without_a_connection_waits_too(adapters: Adapters) -> None:
    row = replace(request(1), origin=Origin("client"), mark=0)
    adapters.room.leave(LEDGER, row)
    assert list(adapters.room.look(LEDGER)) == [row]


def test_a_request_waits_with_the_call_that_it_belongs_to(adapters: Adapters) -> None:
    call = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    row = replace(request(1), origin=Origin("client", trace=call))
    adapters.room.leave(LEDGER, row)
    assert list(adapters.room.look(LEDGER)) == [row]


def test_a_request_that_is_left_twice_waits_once(adapters: Adapters) -> None:
    for _ in range(2):
        adapters.room.leave(LEDGER, request(1))
    assert list(adapters.room.look(LEDGER)) == [request(1)]


def test_the_rooms_of_two_ledgers_are_apart(adapters: Adapters) -> None:
    adapters.room.leave(LEDGER, request(1))
    adapters.room.leave(OTHER, request(2))
    adapters.room.clear(OTHER, [request(1).nonce])
    assert list(adapters.room.look(LEDGER)) == [request(1)]
    assert list(adapters.room.look(OTHER)) == [request(2)]


def test_clearing_forgets_those_requests_only_and_may_be_repeated(adapters: Adapters) -> None:
    for number in range(60):
        adapters.room.leave(LEDGER, request(number))
    for _ in range(2):
        adapters.room.clear(LEDGER, [request(number).nonce for number in range(1, 60)])
    assert list(adapters.room.look(LEDGER)) == [request(0)]


def test_nothing_stands_on_a_new_board(adapters: Adapters) -> None:
    assert adapters.board.read(LEDGER) == Notice()
    assert adapters.board.read(LEDGER).is_free(NOW)


def test_one_leads_until_its_lease_ends(adapters: Adapters) -> None:
    assert adapters.board.take(LEDGER, b"one", NOW, NOW + 150)
    assert not adapters.board.take(LEDGER, b"two", NOW + 149, NOW + 299)
    assert adapters.board.read(LEDGER).leader == b"one"
    assert adapters.board.take(LEDGER, b"two", NOW + 150, NOW + 300)
    assert adapters.board.read(LEDGER).leader == b"two"
    assert adapters.board.take(OTHER, b"one", NOW, NOW + 150)


def test_a_lease_that_a_wrong_clock_gave_does_not_count(adapters: Adapters) -> None:
    assert adapters.board.take(LEDGER, b"wrong", NOW + 10**7, NOW + 10**7)
    assert adapters.board.read(LEDGER).is_free(NOW)
    assert adapters.board.take(LEDGER, b"right", NOW, NOW + LONGEST_LEASE_MS)
    assert not adapters.board.take(LEDGER, b"late", NOW, NOW + 150)


def test_a_leader_posts_and_hands_over(adapters: Adapters) -> None:
    receipt = Receipt(40, NOW, {b"x" * 12: [Placing(0, 2, 38), Placing(4, 1, 40)]}, frozenset({b"y" * 12}))
    notice = Notice(b"two", NOW + 60, [receipt], 3)
    adapters.board.take(LEDGER, b"one", NOW, NOW + 150)
    assert adapters.board.post(LEDGER, b"one", notice)
    assert adapters.board.read(LEDGER) == notice
    assert not adapters.board.post(LEDGER, b"one", replace(notice, waiting=9))
    assert adapters.board.read(LEDGER) == notice


def test_taking_the_lead_keeps_the_receipts(adapters: Adapters) -> None:
    receipt = Receipt(1, NOW, {b"x" * 12: [Placing(0, 1, 1)]})
    adapters.board.take(LEDGER, b"one", NOW, NOW + 150)
    adapters.board.post(LEDGER, b"one", Notice(b"one", NOW, [receipt], 1))
    adapters.board.take(LEDGER, b"two", NOW, NOW + 150)
    assert adapters.board.read(LEDGER) == Notice(b"two", NOW + 150, [receipt], 1)
