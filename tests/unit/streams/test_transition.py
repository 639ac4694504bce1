"""T4: delivery transitions only move forward, whatever is sent, repeated, racing for an id, or interrupted."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.streams.application.emit import delivery_group
from millrace.streams.domain.errors import SdkError
from millrace.streams.domain.negotiate import RECEIPT_TERMINALITY
from tests.unit.streams.crashing_stores import CRASHES, Crash, Fuse, crashing_hub
from tests.unit.streams.hub import RUNTIME, StreamsHub, accepted, codes, transition

FORWARD = ["queued", "dispatching", "in_flight", "sent", "delivered"]
ENDS = ["delivered", "failed", "cancelled", "expired", "rejected"]
STATES = [*FORWARD, *ENDS[1:]]


def with_receipts() -> StreamsHub:
    hub = StreamsHub()
    hub.agree(requested_capabilities=[RECEIPT_TERMINALITY])
    return hub


@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("to", STATES)
@pytest.mark.parametrize("receipts", [True, False])
def test_one_state_follows_another_or_the_reason_is_told(before: str, to: str, receipts: bool) -> None:
    """T4: forward only, states may be skipped, nothing after a terminal one; without receipts `sent` is terminal,
    and the refusal of what could follow it names the capability."""
    hub = with_receipts() if receipts else StreamsHub()
    accepted(hub.send(transition("e1", "m", before))[0])
    (result,) = hub.send(transition("e2", "m", to))
    if before in ENDS or (before == "sent" and not receipts):
        wanted: Any = "RUNTIME_ALREADY_TERMINAL"
    elif to in FORWARD and FORWARD.index(to) <= FORWARD.index(before):
        wanted = "RUNTIME_INVALID_STATE"
    else:
        wanted = 2
    assert codes([result]) == [wanted]
    if isinstance(result, SdkError):
        assert result.status == 409
        named = before == "sent" and not receipts and to in ENDS
        capability = {"capability": RECEIPT_TERMINALITY} if named else {}
        assert result.details == {"domain": "delivery", "state": before, "to": to, **capability}
        assert (RECEIPT_TERMINALITY in result.message) == named
    assert len(hub.stored()) == (2 if wanted == 2 else 1)


@pytest.mark.parametrize("to", STATES)
def test_a_message_may_begin_in_any_state(to: str) -> None:
    """T4: states may be skipped, the first ones too."""
    assert codes(StreamsHub().send(transition("e", "m", to))) == [1]


@pytest.mark.parametrize("to", ["SENT", "", "unknown", None, 3, ["sent"], {"x": 1}])
def test_an_unknown_state_is_refused_by_its_field(to: Any) -> None:
    """T4."""
    hub = StreamsHub()
    (result,) = hub.send(transition("e", "m", to))
    assert isinstance(result, SdkError)
    assert (result.status, result.details["field"]) == (400, "payload.to")
    assert not hub.stored()
    assert not hub.rows.items


def test_messages_and_runtimes_are_apart_and_streams_are_not() -> None:
    """T4: a message is one per runtime, whichever stream its transitions come by."""
    hub = StreamsHub()
    hub.agree("r2")
    hub.send(transition("e1", "m", "delivered"))
    assert codes(hub.send(transition("e2", "other", "queued"))) == [2]
    assert codes(hub.send(transition("e1", "m", "queued"), runtime="r2")) == [1]
    assert codes(hub.send(transition("e3", "m", "queued"), stream="s2")) == ["RUNTIME_ALREADY_TERMINAL"]


def test_an_event_id_is_a_streams_own_also_for_transitions() -> None:
    """T3, T4: the same id in another stream of the runtime is another event."""
    hub = StreamsHub()
    accepted(hub.send(transition("e", "m", "queued"), stream="s1")[0])
    assert codes(hub.send(transition("e", "m", "dispatching"), stream="s2")) == [1]
    assert codes(hub.send(transition("e", "m", "queued"), stream="s1")) == [1]
    assert codes(hub.send(transition("e", "m", "dispatching"), stream="s2")) == [1]
    assert codes(hub.send(transition("e", "m", "dispatching"), stream="s1")) == ["RUNTIME_CONFLICT"]


def test_the_same_event_again_passes_also_after_later_ones_and_after_the_end() -> None:
    """T3, T4."""
    hub = with_receipts()
    sent = [transition(f"e{n}", "m", to) for n, to in enumerate(FORWARD)]
    for one in sent:
        accepted(hub.send(one)[0])
    for position, one in enumerate(sent, 1):
        again = accepted(hub.send(one)[0])
        assert (again.position, again.deduped) == (position, True)
    assert len(hub.stored()) == len(FORWARD)


def test_an_id_with_other_content_conflicts_and_leaves_the_message_as_it_was() -> None:
    """T3, T4: the row goes back to before it; the next transition follows what was there."""
    hub = StreamsHub()
    accepted(hub.send(transition("taken", "other", "queued"))[0])
    accepted(hub.send(transition("e1", "m", "queued"))[0])
    (refused,) = hub.send(transition("taken", "m", "failed"))
    assert isinstance(refused, SdkError)
    assert (refused.code, refused.details["domain"]) == ("SDK_RUNTIME_CONFLICT", "event")
    row = hub.rows.get(delivery_group("default", RUNTIME), "m")
    assert row is not None
    assert (row.content["state"], row.content["terminal"], row.pending) == ("queued", False, None)
    assert codes(hub.send(transition("e2", "m", "dispatching"))) == [3]


def test_a_first_transition_that_conflicts_leaves_no_trace_of_a_state() -> None:
    """T3, T4."""
    hub = StreamsHub()
    accepted(hub.send(transition("taken", "other", "queued"))[0])
    assert codes(hub.send(transition("taken", "m", "rejected"))) == ["RUNTIME_CONFLICT"]
    assert codes(hub.send(transition("e", "m", "queued"))) == [2]


def crashing() -> tuple[StreamsHub, Fuse]:
    hub, fuse = crashing_hub()
    hub.agree(requested_capabilities=[RECEIPT_TERMINALITY])
    return hub, fuse


@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("restarted", [True, False])
def test_a_retry_after_a_crash_between_the_two_writes_passes(crash: str, restarted: bool) -> None:
    """T4: the row remembers the event_id."""
    hub, fuse = crashing()
    hub.send(transition("e1", "m", "queued"))
    fuse.at = crash
    with pytest.raises(Crash):
        hub.send(transition("e2", "m", "delivered"))
    fuse.at = ""
    if restarted:
        hub.restart()
    assert codes(hub.send(transition("e2", "m", "delivered"))) == [2]
    assert [one["event_id"] for one in hub.stored()] == ["e1", "e2"]
    assert codes(hub.send(transition("e3", "m", "failed"))) == ["RUNTIME_ALREADY_TERMINAL"]


@pytest.mark.parametrize("crash", ["after put", "before append"])
def test_what_follows_a_crashed_transition_stands_after_it_in_the_log(crash: str) -> None:
    """T4: nobody retries; whoever changes the message next sees to the event first."""
    hub, fuse = crashing()
    fuse.at = crash
    with pytest.raises(Crash):
        hub.send(transition("e1", "m", "queued"), stream="s1")
    fuse.at = ""
    assert codes(hub.send(transition("e0", "m", "queued"), stream="s2")) == ["RUNTIME_INVALID_STATE"]
    assert [one["event_id"] for one in hub.stored("s1")] == ["e1"]
    assert codes(hub.send(transition("e2", "m", "sent"), stream="s1")) == [2]


def test_a_crashed_transition_under_a_taken_id_is_undone_by_whoever_comes_next() -> None:
    """T3, T4."""
    hub, fuse = crashing()
    hub.send(transition("taken", "other", "queued"), transition("e1", "m", "queued"))
    fuse.at = "after put"
    with pytest.raises(Crash):
        hub.send(transition("taken", "m", "failed"))
    assert codes(hub.send(transition("e2", "m", "dispatching"))) == [3]
    assert codes(hub.send(transition("taken", "m", "failed"))) == ["RUNTIME_CONFLICT"]
    assert codes(hub.send(transition("e3", "m", "delivered"))) == [4]


@dataclass
class Model:
    """What the rules say, for events that arrive one after the other."""

    passed: dict[str, list[Step]] = field(default_factory=dict)
    """By message, in order."""
    used: dict[tuple[str, str], Step] = field(default_factory=dict)
    """By stream and event id: what it says."""

    def expect(self, step: Step) -> str:
        passed = self.passed.get(step.message, [])
        known = [one for one in passed if (one.stream, one.id) == (step.stream, step.id)]
        if known:
            return "" if known[0] == step else "RUNTIME_CONFLICT"
        now = passed[-1].to if passed else None
        if now in ENDS:
            return "RUNTIME_ALREADY_TERMINAL"
        if now is not None and step.to in FORWARD and FORWARD.index(step.to) <= FORWARD.index(now):
            return "RUNTIME_INVALID_STATE"
        return "" if self.used.get((step.stream, step.id), step) == step else "RUNTIME_CONFLICT"

    def take(self, step: Step) -> None:
        if self.used.setdefault((step.stream, step.id), step) is step:
            self.passed.setdefault(step.message, []).append(step)


class Step(NamedTuple):
    stream: str
    id: str
    message: str
    to: str
    note: int

    def event(self) -> dict[str, Any]:
        return transition(self.id, self.message, self.to, extensions={"note": self.note})


steps = st.builds(
    Step,
    st.sampled_from(["s1", "s1", "s2"]),
    st.sampled_from([f"e{n}" for n in range(6)]),
    st.sampled_from(["m1", "m2"]),
    st.sampled_from([*FORWARD, *FORWARD, "failed", "expired"]),
    st.integers(0, 1),
)
happenings = st.tuples(steps, st.sampled_from(["", "", "", *CRASHES]), st.booleans())


@given(st.lists(happenings, max_size=25))
@settings(max_examples=120)
def test_any_sequence_of_transitions_retries_and_crashes_does_what_the_rules_say(
    happened: list[tuple[Step, str, bool]],
) -> None:
    """T3, T4: an interrupted transition is retried, or somebody else finds it; then it has happened, or it has not."""
    hub, fuse = crashing()
    model = Model()
    for step, crash, retried in happened:
        fuse.at = crash
        try:
            answer = said(hub.send(step.event(), stream=step.stream)[0])
        except Crash:
            hub.restart()
            if retried:
                answer = said(hub.send(step.event(), stream=step.stream)[0])
            elif found_by_another(hub, step):
                answer = ""
            else:
                assert crash == "before put" or model.expect(step)
                continue
        fuse.at = ""
        assert answer == model.expect(step)
        if not answer:
            model.take(step)
    check_log(hub, model)


def said(result: Any) -> str:
    return result.code.removeprefix("SDK_") if isinstance(result, SdkError) else ""


def found_by_another(hub: StreamsHub, step: Step) -> bool:
    """Settle the message as its next change would; whether the step is among what it went through."""
    group = delivery_group("default", RUNTIME)
    row = hub.emit.announce.settled(group, step.message, hub.rows.get(group, step.message))
    passed = row.content.get("events", {}).values() if row else ()
    return any((stream, id_) == (step.stream, step.id) for stream, id_, _ in passed)


def check_log(hub: StreamsHub, model: Model) -> None:
    """All that passed is in the log, once, and per message in order; nothing else is."""
    for stream in ("s1", "s2"):
        stored = [
            Step(stream, e["event_id"], e["message_id"], e["payload"]["to"], e["extensions"]["note"])
            for e in hub.stored(stream)
        ]
        for message in ("m1", "m2"):
            passed = [step for step in model.passed.get(message, []) if step.stream == stream]
            assert [step for step in stored if step.message == message] == passed
    for passed in model.passed.values():
        ranks = [FORWARD.index(step.to) if step.to in FORWARD else len(FORWARD) for step in passed]
        assert all(before < after for before, after in pairwise(ranks))
        assert sum(step.to in ENDS for step in passed) <= 1
