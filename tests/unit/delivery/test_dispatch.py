"""The dispatcher on every journal: what it selects, in which order, and what an answer leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from millrace.delivery.application.dispatch import Dispatch
from millrace.delivery.application.retry_delivery import Retry
from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.families import Families, Family
from millrace.delivery.domain.outcomes import Answer, Response, held, judge, unreached
from millrace.delivery.domain.retry import Pace, Schedule
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.states import Outcome, Status, settle
from millrace.delivery.domain.targets import Blocked, Target, TargetState
from millrace.delivery.ports.deliveries import START, DeliveryLedger
from millrace.ledger.domain.errors import Conflict, NotFound
from tests.support.worlds import A, B, Scripted, World, event, results

HOUR = 3_600_000


def answered(status: int, body: bytes = b"") -> object:
    return lambda picks: judge(Response(status, body), [pick.event_id for pick in picks], 0)


def test_what_a_has_is_sent_to_b_and_not_to_a_again(world: World) -> None:
    """D6: A, then B, then A; nothing twice."""
    world.capture("e1", "e2", "e3")
    first, other, again = Scripted(), Scripted(), Scripted()
    world.drain(first, A)
    world.drain(other, B)
    drained = world.drain(again, A)
    assert first.sent == other.sent == ["e1", "e2", "e3"]
    assert again.sent == []
    assert drained.complete
    world.capture("e4")
    world.drain(again, A)
    assert again.sent == ["e4"]


def test_events_go_out_byte_for_byte(world: World) -> None:
    """D3."""
    world.capture("e1", text="é", number=1.50)
    raw = event("e1", text="é", number=1.50)
    receiver = Scripted()
    world.drain(receiver)
    assert receiver.bodies == [raw]


def test_batches_keep_to_the_receivers_limits(world: World) -> None:
    world.capture(*[f"e{number}" for number in range(7)], pad="x" * 100)
    by_count, by_size = Scripted(most_events=3), Scripted(most_bytes=400)
    world.drain(by_count, A)
    world.drain(by_size, B)
    assert [len(batch) for batch in by_count.offered] == [3, 3, 1]
    assert [len(batch) for batch in by_size.offered] == [2, 2, 2, 1]
    assert by_count.sent == by_size.sent


def test_an_event_larger_than_a_batch_goes_alone(world: World) -> None:
    world.capture("small")
    world.capture("large", pad="x" * 1000)
    world.capture("last")
    receiver = Scripted(most_bytes=200)
    world.drain(receiver)
    assert receiver.offered == [["small"], ["large"], ["last"]]


def test_a_transient_event_holds_back_the_newer_ones_of_its_ledger(world: World) -> None:
    """D6: nothing newer is sent until it is through."""
    world.capture("e1", "e2")
    receiver = Scripted([results(e1="transient", e2="success")])
    world.drain(receiver)
    world.capture("e3")
    world.drain(receiver)
    assert receiver.sent == ["e1", "e2"]
    world.clock.ahead(HOUR)
    world.drain(receiver)
    assert receiver.offered[1:] == [["e1"], ["e3"]]


@pytest.mark.parametrize("status", ["pending", "rejected", "terminal_failed"])
def test_what_waits_for_other_reasons_holds_back_nothing(world: World, status: str) -> None:
    """D6."""
    world.capture("e1")
    receiver = Scripted([results(e1=status)])
    world.drain(receiver)
    world.capture("e2")
    world.drain(receiver)
    assert receiver.sent == ["e1", "e2"]
    assert world.statuses() == {"e1": status, "e2": "success"}


@pytest.mark.parametrize("status", ["pending", "rejected", "transient"])
def test_an_open_delivery_is_tried_again_with_growing_pauses_and_given_up_at_the_ceiling(
    world: World, status: str
) -> None:
    """D4."""
    pace = Pace(1000, 4000, 4)
    world.schedule = Schedule(pace, pace, pace)
    world.capture("e1")
    receiver = Scripted([results(e1=status)] * 4)
    waits = []
    for _ in range(4):
        world.drain(receiver)
        world.drain(receiver)  # too early: nothing is due
        delivery = world.delivery("e1")
        assert delivery is not None
        if delivery.next_ms is not None:
            waits.append(delivery.next_ms - world.clock())
            world.clock.ahead(waits[-1])
    assert waits == [500, 1000, 2000]
    assert len(receiver.offered) == 4
    delivery = world.delivery("e1")
    assert delivery is not None
    assert (delivery.status, delivery.attempts) == (Status.TERMINAL_FAILED, 4)
    assert "given up after 4 attempts" in delivery.error


def test_a_terminal_delivery_leaves_selection_stays_inspectable_and_waits_for_a_hand(world: World) -> None:
    """D4: oversized or permanent failure progresses the drain and remains inspectable."""
    world.capture("e1", "e2", "e3")
    receiver = Scripted([answered(413), results(e1="success"), answered(413), answered(413)])
    assert world.drain(receiver).complete
    assert receiver.offered == [["e1", "e2", "e3"], ["e1"], ["e2", "e3"], ["e2"], ["e3"]]
    assert world.statuses() == {"e1": "success", "e2": "terminal_failed", "e3": "success"}
    world.clock.ahead(1000 * HOUR)
    world.drain(receiver)
    assert len(receiver.offered) == 5
    [found] = world.deliveries.find(A.id, Status.TERMINAL_FAILED)
    assert (found.event_id, found.event_type, found.delivery.error) == (
        "e2",
        "note",
        "answered 413: too large for the target",
    )
    Retry(world.deliveries, world.journal, world.clock)(A.id, "e2")
    world.drain(receiver)
    assert receiver.offered[5:] == [["e2"]]
    assert world.statuses()["e2"] == "success"


def test_only_what_is_open_or_terminal_can_be_retried(world: World) -> None:
    world.capture("e1", "e2")
    world.drain(Scripted([results(e1="success", e2="terminal_failed")]))
    retry = Retry(world.deliveries, world.journal, world.clock)
    with pytest.raises(Conflict):
        retry(A.id, "e1")
    with pytest.raises(NotFound):
        retry(A.id, "nobody")
    with pytest.raises(NotFound):
        retry(B.id, "e2")
    assert retry.all_terminal(A.id) == 1
    assert retry.all_terminal(A.id) == 0


def test_poison_in_a_batch_ends_up_alone(world: World) -> None:
    """D8: 400 without details bisects the batch; its neighbours get through."""
    ids = [f"e{number}" for number in range(16)]
    world.capture(*ids)

    def poisoned(picks: object) -> Answer:
        sent = receiver.offered[-1]
        body = (
            b""
            if "e11" in sent
            else b'{"results":[%s]}' % b",".join(b'{"event_id":"%s","status":"success"}' % id_.encode() for id_ in sent)
        )
        return judge(Response(400 if "e11" in sent else 200, body), sent, 0)

    receiver = Scripted([poisoned] * 40)
    assert world.drain(receiver).complete
    assert {id_ for id_, status in world.statuses().items() if status == "success"} == set(ids) - {"e11"}
    assert world.statuses()["e11"] == "rejected"
    assert len(receiver.offered) <= 9


def test_a_400_with_details_rejects_just_those_and_sends_the_others_again_at_once(world: World) -> None:
    """D8."""
    world.capture("e1", "e2", "e3")
    receiver = Scripted([answered(400, b'{"errors":[{"event_id":"e2","error":"no"}]}')])
    assert world.drain(receiver).complete
    assert receiver.offered == [["e1", "e2", "e3"], ["e1", "e3"]]
    assert world.statuses() == {"e1": "success", "e2": "rejected", "e3": "success"}
    rejected = world.delivery("e2")
    assert rejected is not None
    assert rejected.error == "no"


def test_410_pauses_the_target_and_attempts_nothing_more(world: World) -> None:
    """D8."""
    world.capture("e1")
    receiver = Scripted([answered(410)])
    assert world.drain(receiver).blocked == Blocked.PAUSED
    world.clock.ahead(HOUR)
    assert world.drain(receiver).detail == "answered 410: gone"
    assert len(receiver.offered) == 1
    assert world.statuses() == {}


def test_a_target_that_cannot_be_reached_costs_no_event_an_attempt(world: World) -> None:
    """D2: the reason is kept, and a drain that gets through takes it away."""
    world.capture("e1")
    receiver = Scripted([unreached("no connection")] * 1)
    assert world.drain(receiver).blocked == Blocked.NETWORK_UNAVAILABLE
    assert world.states.get(A.id).blocked == "network_unavailable"
    assert world.statuses() == {}
    world.drain(receiver)
    assert world.statuses() == {"e1": "success"}
    assert world.states.get(A.id).blocked == ""


@pytest.mark.parametrize("reason", list(Blocked)[:6])
def test_a_blocked_drain_sends_nothing_and_says_why_until_one_gets_through(world: World, reason: Blocked) -> None:
    """D2."""
    world.capture("e1")
    blocked = Scripted(blocked=(reason, "because"))
    assert world.drain(blocked).blocked == reason
    assert blocked.offered == []
    state = world.states.get(A.id)
    assert (state.blocked, state.blocked_detail, state.blocked_ms) == (reason, "because", world.clock())
    world.drain(Scripted())
    assert world.states.get(A.id).blocked == ""
    assert world.statuses() == {"e1": "success"}


def test_a_dead_target_holds_no_other_back(world: World) -> None:
    """D6: B answers 500 for an hour, A is never late."""
    dead, well = Scripted([held("answered 500")] * 10_000), Scripted()
    for minute in range(60):
        world.capture(f"e{minute}")
        for target, receiver in ((B, dead), (A, well)):
            world.drain(receiver, target)
        assert well.sent == [f"e{number}" for number in range(minute + 1)]
        world.clock.ahead(60_000)
    assert world.statuses(A) == dict.fromkeys(well.sent, "success")
    assert set(world.statuses(B).values()) == {"transient"}
    assert len(dead.offered) < 30  # the circuit and the schedule leave it alone
    dead.answers.clear()
    world.clock.ahead(HOUR)
    world.drain(dead, B)
    assert dead.sent[-60:] == [f"e{minute}" for minute in range(60)]
    assert set(world.statuses(B).values()) == {"success"}


def test_retry_after_is_honoured_by_the_whole_target(world: World) -> None:
    """D8."""
    world.capture("e1")
    receiver = Scripted([held("answered 429", 90_000)])
    drained = world.drain(receiver)
    assert drained.open_until_ms == world.clock() + 90_000
    world.clock.ahead(89_999)
    world.drain(receiver)
    assert len(receiver.offered) == 1
    world.clock.ahead(1)
    world.drain(receiver)
    assert len(receiver.offered) == 2


def test_what_is_delivered_stays_delivered(world: World) -> None:
    """D4: a late answer of another kind changes nothing."""
    world.capture("e1")
    world.drain(Scripted())
    [pick] = world.deliveries.find(A.id, None)
    worse = settle(None, Outcome(Status.REJECTED), 5, Schedule(), 0)
    world.ledger.record(A, pick.ledger, {pick.position: worse}, 0)
    assert world.statuses() == {"e1": "success"}


def test_a_target_gets_the_families_it_wants(world: World) -> None:
    """D6; and the others cost one look."""
    orders = Target("orders", "stub", prefixes=frozenset({"order."}))
    world.capture("n1", "n2")
    world.capture("o1", kind="order.paid")
    world.capture("n3")
    receiver = Scripted()
    assert world.drain(receiver, orders).complete
    assert receiver.offered == [["o1"]]


def test_a_target_that_starts_now_is_spared_the_past(world: World) -> None:
    world.capture("e1", "e2")
    late = world.know(Target("late", "stub"), start_now=True)
    world.capture("e3")
    receiver = Scripted()
    world.drain(receiver, late)
    assert receiver.sent == ["e3"]


def test_a_drain_that_runs_out_of_time_goes_on_where_it_stopped(world: World) -> None:
    world.capture(*[f"e{number}" for number in range(5)])
    world.know(A)
    receiver = Scripted(most_events=2)
    times = iter([True, True, False])
    ended = Dispatch(world.ledger, world.states, world.clock, lambda: 0.0, may_go_on=lambda: next(times))(A, receiver)
    assert not ended.complete
    world.drain(receiver)
    assert receiver.offered == [["e0", "e1"], ["e2", "e3"], ["e4"]]


@dataclass
class Replacing:
    """A ledger in which an event is replaced between its selection and its attempt."""

    ledger: DeliveryLedger
    replace: list[Callable[[], None]]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ledger, name)

    def begin(self, target: Target, ledger: str, picks: Sequence[Pick]) -> Sequence[Pick]:
        if self.replace:
            self.replace.pop()()
        return self.ledger.begin(target, ledger, picks)


def test_a_drain_goes_on_past_an_event_that_was_replaced_in_time(world: World) -> None:
    """D5: nothing was sent of it, and nothing was learnt about the target."""
    world.capture("cart-1", key="cart")
    world.ledger = Replacing(world.ledger, [lambda: world.capture("cart-2", key="cart")])
    receiver = Scripted([unreached("no connection")])
    world.drain(receiver)
    assert receiver.sent == ["cart-2"]
    assert world.states.get(A.id).circuit.failures == 1
    assert world.statuses() == {}
    world.drain(receiver)
    assert world.statuses() == {"cart-2": "success"}


def test_an_event_that_has_a_delivery_beyond_the_cursor_is_not_taken_for_new(world: World) -> None:
    world.capture("e1", "e2", "e3")
    receiver = Scripted([answered(400, b'{"errors":[{"event_id":"e2"}]}'), unreached("no connection")])
    world.drain(receiver)
    assert world.statuses() == {"e2": "rejected"}
    world.drain(receiver)
    assert receiver.offered == [["e1", "e2", "e3"], ["e1", "e3"], ["e1", "e3"]]
    assert world.statuses() == {"e1": "success", "e2": "rejected", "e3": "success"}


def test_a_cursor_never_goes_back(world: World) -> None:
    world.capture("e1", "e2", "e3")
    world.know(A)
    [ledger] = world.ledger.ledgers(A, world.clock())
    for through in (3, 1):
        world.ledger.record(A, ledger, {}, through)
    chosen = world.ledger.select(A, ledger, world.clock(), 10, 1000)
    assert (chosen.picks, chosen.through) == ([], 3)


def test_a_drain_with_nothing_to_do_clears_a_block_and_leaves_the_circuit(world: World) -> None:
    """D2: a later drain clears the reason; but only an answer says that a target is well."""
    world.capture("e1")
    world.drain(Scripted([held("answered 500")]))
    world.drain(Scripted(blocked=(Blocked.MISSING_AUTH, "no token")))
    receiver = Scripted()
    assert world.drain(receiver).complete
    assert receiver.offered == []
    state = world.states.get(A.id)
    assert (state.blocked, state.circuit.failures) == ("", 1)


def test_pausing_and_blocking_leave_the_rest_of_a_targets_state(world: World) -> None:
    world.know(A)
    circuit = Circuit(2, 7)
    world.states.fare(A.id, circuit, "answered 500")
    world.states.pause(A.id, "by hand")
    world.states.block(A.id, Blocked.DAEMON_LOCK, "another one", 5)
    assert world.states.get(A.id) == TargetState(circuit, "by hand", "daemon_lock", "another one", 5)
    world.states.fare(A.id, Circuit(), "")
    assert world.states.get(A.id) == TargetState(paused_why="by hand")
    world.states.pause(A.id, "")
    assert world.states.get(A.id) == TargetState()


def test_a_wanted_event_is_found_behind_any_number_of_others(world: World) -> None:
    world.families = Families({"here.": Family.LOCAL_ONLY})
    world.capture(*[f"h{number}" for number in range(1500)], kind="here.note")
    world.capture("e1")
    receiver = Scripted(most_events=2)
    assert world.drain(receiver).complete
    assert receiver.sent == ["e1"]


def test_deliveries_are_listed_page_by_page(world: World) -> None:
    world.capture(*[f"e{number}" for number in range(5)])
    world.drain(Scripted([results(e0="rejected", e1="success", e2="rejected", e3="rejected", e4="success")]))
    for status, expected in ((None, ["e0", "e1", "e2", "e3", "e4"]), (Status.REJECTED, ["e0", "e2", "e3"])):
        listed, after = [], START
        while page := world.deliveries.find(A.id, status, after, 2):
            assert len(page) <= 2
            listed += [found.event_id for found in page]
            after = page[-1].place
        assert listed == expected


def test_an_event_whose_bytes_are_gone_holds_back_nothing(world: World) -> None:
    world.capture("e1")
    world.drain(Scripted([results(e1="transient")]))
    [found] = world.deliveries.find(A.id, Status.TRANSIENT)
    world.payloads.remove([found.position], "archive", "somewhere", world.clock())
    world.capture("e2")
    receiver = Scripted()
    world.drain(receiver)
    world.clock.ahead(HOUR)
    world.drain(receiver)
    assert receiver.sent == ["e2"]
