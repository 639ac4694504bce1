from __future__ import annotations

from collections.abc import Callable

from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Leg
from tests.contract.conftest import Adapters

LEDGERS = [Ledger(f"sync#t#p{number}", f"scope{number % 3}") for number in range(50)]


def walk(stretch: Callable[[str, int], Leg], limit: int) -> list[str]:
    """From each place to the next, until the end."""
    names, place = list[str](), ""
    while True:
        found = stretch(place, limit)
        assert len(found.ledgers) <= limit
        names += [ledger.name for ledger in found.ledgers]
        place = found.place
        if not place:
            return names


def test_every_registered_ledger_is_met_once_from_place_to_place(adapters: Adapters) -> None:
    for ledger in LEDGERS:
        adapters.state.register(ledger)
    for limit in (1, 7, 64):
        assert sorted(walk(adapters.rounds.registered, limit)) == sorted(ledger.name for ledger in LEDGERS)


def test_a_registered_ledger_comes_with_its_scope(adapters: Adapters) -> None:
    adapters.state.register(LEDGERS[1])
    assert list(adapters.rounds.registered("", 5).ledgers) == [LEDGERS[1]]


def test_a_ledger_is_noted_in_a_window_once(adapters: Adapters) -> None:
    for ledger in [*LEDGERS, *LEDGERS[:5]]:
        adapters.rounds.note(ledger, 3)
    adapters.rounds.note(LEDGERS[0], 4)
    for limit in (1, 7, 64):
        met = walk(lambda place, limit: adapters.rounds.noted(3, place, limit), limit)
        assert sorted(met) == sorted(ledger.name for ledger in LEDGERS)
    assert walk(lambda place, limit: adapters.rounds.noted(4, place, limit), 9) == [LEDGERS[0].name]
    assert walk(lambda place, limit: adapters.rounds.noted(5, place, limit), 9) == []


def test_whatever_a_ledger_is_called_its_note_names_it(adapters: Adapters) -> None:
    named = [Ledger.to_read(name) for name in ("sync#t#a:b|c", "sync#t#\uffff", 'sync#t#"', "sync#t#ü")]
    for ledger in named:
        adapters.rounds.note(ledger, 3)
    met = walk(lambda place, limit: adapters.rounds.noted(3, place, limit), 1)
    assert sorted(met) == sorted(ledger.name for ledger in named)


def test_places_are_kept_apart_by_lane(adapters: Adapters) -> None:
    assert adapters.rounds.kept_place("asleep") == ""
    adapters.rounds.keep_place("asleep", "3:sync#t#p:1")
    adapters.rounds.keep_place("grown", "12|")
    adapters.rounds.keep_place("grown", "13|0:x")
    assert (adapters.rounds.kept_place("asleep"), adapters.rounds.kept_place("grown")) == ("3:sync#t#p:1", "13|0:x")
