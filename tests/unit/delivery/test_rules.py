"""The small rules: families, retry schedule, circuit, ranges, what an event is, what a target may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.events import captured
from millrace.delivery.domain.families import Families, Family, families
from millrace.delivery.domain.ranges import fold, replaced, unfold
from millrace.delivery.domain.retry import HOUR, Schedule
from millrace.delivery.domain.states import Delivery, Outcome, Status, settle
from millrace.delivery.domain.targets import Target, definition
from millrace.delivery.receivers.registry import RECEIVERS
from millrace.ledger.domain.errors import BadRequest, TooLarge

STATUSES = st.sampled_from(list(Status))


def test_the_longest_prefix_decides_and_what_is_not_listed_is_a_teamspace_fact() -> None:
    """D2."""
    rules = Families({"debug.": Family.DISCARDABLE, "debug.keep.": Family.LOCAL_ONLY})
    assert rules.of("debug.x") is Family.DISCARDABLE
    assert rules.of("debug.keep.x") is Family.LOCAL_ONLY
    assert rules.of("debug") is Family.TEAMSPACE
    assert rules.of("order.paid") is Family.TEAMSPACE


@pytest.mark.parametrize(
    ("prefixes", "out"), [([], []), ({"a": "nowhere"}, []), ({"": "local_only"}, []), ({}, "a"), ({}, [1])]
)
def test_families_that_make_no_sense_are_refused(prefixes: object, out: object) -> None:
    with pytest.raises(BadRequest):
        families(prefixes, out)


def test_a_local_only_event_goes_to_no_target() -> None:
    assert not Target("t", "stub").wants("x", Family.LOCAL_ONLY)
    assert Target("t", "stub").wants("x", Family.DISCARDABLE)


@given(STATUSES, STATUSES, st.integers(0, 300), st.floats(0, 1, exclude_max=True))
def test_a_delivery_follows_the_transitions(before: Status, outcome: Status, attempts: int, jitter: float) -> None:
    """D4."""
    earlier = Delivery(before, attempts, 1, 2, 3)
    after = settle(earlier, Outcome(outcome), 1000, Schedule(), jitter)
    if earlier.delivered:
        assert after == earlier
        return
    assert (after.attempts, after.first_ms, after.last_ms) == (attempts + 1, 1, 1000)
    assert after.status in (outcome, Status.TERMINAL_FAILED)
    if after.status in (Status.PENDING, Status.REJECTED, Status.TRANSIENT):
        assert after.next_ms is not None
        assert 1000 < after.next_ms <= 1000 + 6 * HOUR
    else:
        assert after.next_ms is None


def test_pauses_double_up_to_the_longest_and_jitter_spreads_them() -> None:
    schedule = Schedule()
    waits = [schedule.wait_ms("transient", attempt, 0.999999) for attempt in range(1, 200)]
    assert waits == sorted(waits)
    assert waits[-1] <= schedule.transient.longest_ms
    assert schedule.wait_ms("transient", 1, 0.0) == schedule.transient.first_ms // 2
    week_ms = sum(schedule.wait_ms("transient", attempt, 0.5) for attempt in range(1, schedule.transient.most))
    assert week_ms > 5 * 24 * HOUR


def test_a_circuit_opens_after_failures_in_a_row_for_longer_and_longer_and_closes_on_an_answer() -> None:
    circuit, opened = Circuit(), []
    for _ in range(10):
        circuit = circuit.failed(0, None, 0.0)
        opened.append(circuit.open_until_ms)
    assert opened[:2] == [0, 0]
    assert opened[2:] == sorted(opened[2:])
    assert opened[2] == 15_000
    assert opened[-1] == 300_000
    assert not circuit.allows(299_999)
    assert circuit.allows(300_000)
    assert circuit.answered() == Circuit()
    assert Circuit().failed(0, 7_000, 0.0).open_until_ms == 7_000


DELIVERIES = st.builds(Delivery, STATUSES, st.integers(1, 2), st.just(0), st.just(0))
CHANGES = st.lists(st.dictionaries(st.integers(1, 12), DELIVERIES, max_size=6), max_size=6)


@given(CHANGES)
def test_ranges_answer_for_every_position_as_single_rows_would(changes: list[dict[int, Delivery]]) -> None:
    """D4: a delivered run may be one row, and is still answered per event."""
    ranges, model = fold([]), dict[int, Delivery]()
    for change in changes:
        ranges = replaced(ranges, list(change.items()))
        model |= change
        assert dict(unfold(ranges)) == model
        assert ranges == fold(sorted(model.items()))
    assert all(one.first in one and one.last + 1 not in one for one in ranges)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"[]", "event"),
        (b'{"event_type":"t"}', "event_id"),
        (b'{"event_id":"  ","event_type":"t"}', "event_id"),
        (b'{"event_id":1,"event_type":"t"}', "event_id"),
        (b'{"event_id":"a"}', "event_type"),
        (b'{"event_id":"a","event_type":""}', "event_type"),
        (b'{"event_id":"a","event_id":"b","event_type":"t"}', "body"),
        (b'{"event_id":"%s","event_type":"t"}' % (b"x" * 1025), "event_id"),
        (b"{", "body"),
    ],
)
def test_an_event_needs_an_id_and_a_type(body: bytes, field: str) -> None:
    """D8; the error names the field, never its value."""
    with pytest.raises(BadRequest) as refused:
        captured(body)
    assert refused.value.details["field"] == field


def test_an_event_has_a_size_limit_and_no_empty_coalesce_key() -> None:
    with pytest.raises(TooLarge):
        captured(b" " * (16 * 1024 * 1024 + 1))
    with pytest.raises(BadRequest):
        captured(b'{"event_id":"a","event_type":"t"}', "")


def test_the_same_content_in_another_spelling_is_the_same_event() -> None:
    one, other = (
        captured(b'{"event_id":"a","event_type":"t","n":1}'),
        captured(b'{"n":1, "event_type":"t","event_id":"a"}'),
    )
    assert one.digest == other.digest
    assert one.body != other.body


def test_a_target_is_read_from_what_an_operator_writes() -> None:
    given = {"type": "external", "url": "https://a.example/x", "mode": "webhook", "families": ["o."]}
    made = definition("t", given, RECEIVERS)
    assert (made.kind, made.webhook, made.prefixes, made.start_now) == ("external", True, frozenset({"o."}), False)
    assert "whsec_x" not in repr(definition("t", {"type": "external", "secrets": ["whsec_x"]}, RECEIVERS))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"type": "ftp"},
        {"type": ["stub"]},
        {"type": "stub", "mode": "webhook"},
        {"type": "external", "url": "https://127.0.0.1/"},
        {"type": "stub", "url": "https://93.184.215.14/"},
        {"type": "stub", "colour": "red"},
        {"type": "stub", "paused": "yes"},
        {"type": "stub", "start": "later"},
        {"type": "stub", "families": [""]},
        {"type": "external", "authorization": "Basic a\r\nX: y"},
        "stub",
    ],
)
def test_a_target_that_makes_no_sense_is_refused_with_its_field(given: object) -> None:
    with pytest.raises(BadRequest) as refused:
        definition("t", given, RECEIVERS)
    assert refused.value.details["field"]
