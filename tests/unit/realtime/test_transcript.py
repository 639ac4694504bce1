"""R8: the transcript depends on the events, not on the order or the number of times they come in."""

from __future__ import annotations

from functools import reduce
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from millrace.realtime.domain.transcript import (
    FINAL,
    PARTIAL,
    Event,
    Transcript,
    better,
    lines,
    materialise,
    merge,
    rank,
)

TIMES = (
    "2026-02-16T10:00:00Z",
    "2026-02-16T10:00:00.000+00:00",
    "2026-02-16T10:00:00.000000001Z",
    "2026-02-16T09:59:59Z",
)


def spoken(event_id: str, kind: str = PARTIAL, ts: str = TIMES[0], utterance: str = "u1", **payload: Any) -> Event:
    return {
        "eventId": event_id,
        "sessionId": "s1",
        "ts": ts,
        "type": kind,
        "payload": {
            "utteranceId": utterance,
            "speaker": "user",
            "text": f"said by {event_id}",
            "startMs": 0,
            "endMs": 10,
            **payload,
        },
        "schemaVersion": "1.0",
        "sequence": int.from_bytes(event_id.encode()),
    }


events = st.builds(
    spoken,
    st.text("aé\ue000\U0001f600", min_size=1, max_size=3),
    st.sampled_from([PARTIAL, FINAL]),
    st.sampled_from(TIMES),
    st.sampled_from(["u1", "u2", "u10"]),
    startMs=st.sampled_from([0, 1, 1.0, 20]),
)
sessions = st.lists(events, max_size=12, unique_by=lambda event: event["eventId"])


@given(sessions, st.data())
def test_any_order_and_any_repetition_give_the_same_transcript(session: list[Event], data: st.DataObject) -> None:
    repeated = session + (data.draw(st.lists(st.sampled_from(session), max_size=6)) if session else [])
    assert materialise(data.draw(st.permutations(repeated))) == materialise(session)


@given(events, events, events)
def test_better_is_associative_commutative_and_idempotent(a: Event, b: Event, c: Event) -> None:
    assert rank(better(a, better(b, c))) == rank(better(better(a, b), c))
    assert rank(better(a, b)) == rank(better(b, a))
    assert better(a, a) is a


@given(sessions)
def test_a_running_state_and_the_whole_agree(session: list[Event]) -> None:
    nothing: Transcript = {}
    assert lines(reduce(merge, session, nothing)) == materialise(session)


@given(sessions)
def test_each_utterance_is_told_once_by_its_final_if_it_has_one(session: list[Event]) -> None:
    told = {line["utteranceId"]: line["final"] for line in materialise(session)}
    assert len(told) == len(materialise(session))
    assert told.keys() == {event["payload"]["utteranceId"] for event in session}
    for utterance, final in told.items():
        kinds = {event["type"] for event in session if event["payload"]["utteranceId"] == utterance}
        assert final == (FINAL in kinds)


def test_an_early_final_beats_a_late_partial() -> None:
    early, late = spoken("a", FINAL, "2026-02-16T09:00:00Z"), spoken("b", PARTIAL, "2026-02-16T11:00:00Z")
    assert [line["eventId"] for line in materialise([early, late])] == ["a"]


def test_the_later_instant_wins_however_it_is_spelled() -> None:
    later, earlier = spoken("a", ts="2026-02-16T10:00:00.5+00:00"), spoken("b", ts="2026-02-16T10:00:00Z")
    assert better(later, earlier) is later


def test_one_instant_spelled_twice_is_a_tie_which_the_greater_event_id_wins() -> None:
    a, b = spoken("a", FINAL, "2026-02-16T10:00:00.000Z"), spoken("b", FINAL, "2026-02-16T10:00:00+00:00")
    assert better(a, b) is b
    assert better(b, a) is b


def test_event_ids_are_ordered_by_code_point() -> None:
    low, high = spoken("\ue000"), spoken("\U0001f600")
    assert better(low, high) is high
    assert "\ue000".encode() < "\U0001f600".encode()


def test_lines_are_ordered_by_start_then_utterance() -> None:
    session = [
        spoken("a", utterance="u2", startMs=5),
        spoken("b", utterance="u1", startMs=5.0),
        spoken("c", utterance="u9", startMs=0),
    ]
    assert [line["utteranceId"] for line in materialise(session)] == ["u9", "u1", "u2"]


def test_a_line_says_where_it_comes_from() -> None:
    event = {**spoken("a", FINAL, startMs=1.0), "sequence": 7}
    (line,) = materialise([{**event, "type": "call.connecting", "payload": {"callId": "c"}}, event])
    assert line == {
        "utteranceId": "u1",
        "speaker": "user",
        "text": "said by a",
        "startMs": 1,
        "endMs": 10,
        "final": True,
        "eventId": "a",
        "sequence": 7,
        "ts": TIMES[0],
    }
    assert type(line["startMs"]) is int
