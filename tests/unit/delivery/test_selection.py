"""The rule of selection alone, which every journal goes by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from millrace.delivery.domain.families import Family
from millrace.delivery.domain.selection import Batch, NewEvent, OpenRun, Pick, Selection, choose
from millrace.delivery.domain.states import Delivery, Status
from millrace.delivery.domain.targets import Target

NOW = 1_000
ALL = Target("a", "stub")


def run(position: int, next_ms: int, status: Status = Status.TRANSIENT) -> OpenRun:
    delivery = Delivery(status, 1, 0, 0, next_ms)
    return OpenRun(delivery, [Pick(position, f"e{position}", b"{}", delivery)])


def new(*positions: int, event_type: str = "note", family: Family = Family.TEAMSPACE) -> list[NewEvent]:
    return [NewEvent(at, event_type, family, Pick(at, f"e{at}", b"{}")) for at in positions]


@dataclass
class Unread:
    """Fails when it is looked at."""

    why: str

    def __iter__(self) -> Iterator[Pick]:
        pytest.fail(self.why)


def at(chosen: Selection) -> list[int]:
    return [pick.position for pick in chosen.picks]


def test_transient_events_go_in_order_up_to_the_first_whose_time_has_not_come() -> None:
    """D6"""
    transient = [run(1, NOW), run(2, NOW + 1), run(3, NOW)]
    chosen = choose(ALL, Batch(10, 1000), NOW, 5, transient=transient, waiting=[], new=new(6))
    assert (at(chosen), chosen.through) == ([1], 5)


@pytest.mark.parametrize("next_ms", [NOW, NOW + 1])
def test_nothing_new_goes_while_something_is_transient_due_or_not(next_ms: int) -> None:
    """D6"""
    chosen = choose(ALL, Batch(10, 1000), NOW, 5, transient=[run(1, next_ms)], waiting=[], new=new(6))
    assert chosen.through == 5
    assert 6 not in at(chosen)


@pytest.mark.parametrize("status", [Status.PENDING, Status.REJECTED])
def test_what_waits_goes_when_its_time_has_come_and_holds_back_nothing(status: Status) -> None:
    """D6"""
    waiting = [run(4, NOW, status), run(2, NOW + 1, status)]
    chosen = choose(ALL, Batch(10, 1000), NOW, 5, transient=[], waiting=waiting, new=new(6))
    assert (at(chosen), chosen.through) == ([4, 6], 6)


def test_what_waits_goes_even_while_something_is_transient() -> None:
    waiting = [run(1, NOW, Status.PENDING)]
    chosen = choose(ALL, Batch(10, 1000), NOW, 5, transient=[run(3, NOW + 1)], waiting=waiting, new=new(6))
    assert (at(chosen), chosen.through) == ([1], 5)


def test_what_is_selected_goes_in_order_of_position_whatever_was_found_first() -> None:
    waiting = [run(4, NOW - 2, Status.PENDING), run(1, NOW - 1, Status.REJECTED)]
    assert at(choose(ALL, Batch(10, 1000), NOW, 5, transient=[run(3, NOW)], waiting=waiting, new=[])) == [1, 3, 4]


def test_events_that_are_not_wanted_or_have_nothing_to_send_are_passed_over() -> None:
    offered = [NewEvent(6), *new(7, family=Family.LOCAL_ONLY), *new(8, event_type="order.paid"), *new(9)]
    orders = Target("a", "stub", prefixes=frozenset({"order."}))
    chosen = choose(orders, Batch(10, 1000), NOW, 5, transient=[], waiting=[], new=offered)
    assert (at(chosen), chosen.through) == ([8], 9)


@pytest.mark.parametrize(("most_events", "most_bytes", "taken"), [(2, 1000, 2), (10, 6, 2), (10, 1, 1), (0, 0, 1)])
def test_a_batch_ends_at_its_limits_but_holds_at_least_one_event(most_events: int, most_bytes: int, taken: int) -> None:
    chosen = choose(ALL, Batch(most_events, most_bytes), NOW, 0, transient=[], waiting=[], new=new(1, 2, 3, 4))
    assert (len(chosen.picks), chosen.through) == (taken, taken)


def test_nothing_is_read_further_than_the_rule_looks() -> None:
    """D9"""
    later = OpenRun(Delivery(Status.TRANSIENT, 1, 0, 0, NOW + 1), Unread("its time has not come"))
    never = OpenRun(Delivery(Status.TRANSIENT, 1, 0, 0, NOW), Unread("it is after one that must wait"))
    assert at(choose(ALL, Batch(9, 99), NOW, 0, transient=[run(1, 0), later, never], waiting=[], new=[])) == [1]
    full = choose(
        ALL,
        Batch(1, 99),
        NOW,
        0,
        transient=[run(1, 0), run(2, 0)],
        waiting=[OpenRun(Delivery(Status.PENDING, 1, 0, 0, 0), Unread("the batch is full"))],
        new=[],
    )
    assert at(full) == [1]
