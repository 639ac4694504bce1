"""C3, C10: archive objects are the same whoever makes them, and hold nothing outside the envelope."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.lake.domain.archive import FOLDER, MAX_TIME_MS, EventWriter, object_name, read_lines, sortable_time
from millrace.lake.domain.catalog import MAX_TEXT_BYTES, REQUIRED_TEXTS
from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import Ledger, join_key
from millrace.ledger.domain.page import Event, Origin, Record
from millrace.ledger.domain.ranges import Ranges

SYNC = Ledger.of("sync", "acme", "demo").name
SESSION = join_key("realtime", "acme", "s1")


def committed(position: int, body: Any, partitions: tuple[str, ...] = (), time_ms: int = 5_000) -> Event:
    return Event(position, Record(f"e{position}", b"", canonical(body), partitions), time_ms, Origin("c1"))


EVENTS = [
    (SYNC, committed(7, {"event": {"type": "set", "payload": {"n": 1.5, "text": 'a ,"payload":" b\n'}}}, ("p", "q"))),
    (SYNC, committed(8, {"event": {"type": "set", "payload": None}}, ("p",))),
    (SESSION, committed(1, {"type": "call.started", "ts": "2026-02-16T10:00:00Z"}, time_ms=4_000)),
]


def written(events: list[tuple[str, Event]]) -> EventWriter:
    writer = EventWriter()
    for ledger, event in events:
        writer.add(ledger, event)
    return writer


def test_the_same_events_make_the_same_object_in_any_order() -> None:
    """C3."""
    first = written(EVENTS).finish()
    for seed in range(5):
        shuffled = random.Random(seed).sample(EVENTS, len(EVENTS))
        assert written(shuffled).finish() == first
    assert first.name == object_name(4_000, {SYNC: Ranges.of([7, 8]), SESSION: Ranges.of([1])})
    assert written(EVENTS[:2]).finish().name != first.name


def test_a_line_is_an_envelope_with_its_ledger_and_ends_with_the_payload_as_stored() -> None:
    """C1, C10."""
    made = written(EVENTS).finish()
    lines = gzip.decompress(made.data).splitlines()
    assert made.events == len(lines) == 3
    ordered = sorted(EVENTS, key=lambda one: (one[0], one[1].position))
    for line, (ledger, event) in zip(lines, ordered, strict=True):
        assert event.record.body
        assert line.split(b',"payload":', 1)[1] == event.record.body + b"}"
        content = json.loads(line)
        assert (content["ledger"], content["tenant"], content["client_id"]) == (ledger, "acme", "c1")
        assert content["committed_at"] == event.time_ms
        assert content["partitions"] == list(event.record.partitions)
        assert content["sequence_position"] == event.position
        assert all(content[field].strip() for field in REQUIRED_TEXTS)


@given(st.lists(st.integers(0, MAX_TIME_MS), min_size=2, max_size=2))
def test_names_sort_as_the_times_do(times: list[int]) -> None:
    """C3."""
    assert (sortable_time(times[0]) < sortable_time(times[1])) == (times[0] < times[1])
    assert object_name(times[0], {}).startswith(FOLDER)


def test_lines_survive_being_written_again() -> None:
    made = written(EVENTS).finish()
    writer = EventWriter()
    for line in read_lines(made.data):
        writer.add_line(line)
    assert writer.finish() == made


def test_events_without_positions_are_told_apart_by_their_content() -> None:
    line = next(read_lines(written(EVENTS).finish().data))
    del line["sequence_position"]
    names = set()
    for key in ("a", "b"):
        writer = EventWriter()
        writer.add_line({**line, "idempotency_key": key})
        names.add(writer.finish().name)
    assert len(names) == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ledger", 5),
        ("tenant", "other"),
        ("committed_at", -1),
        ("committed_at", True),
        ("partitions", "p"),
        ("partitions", [1]),
        ("client_id", 5),
        ("committed_at", MAX_TIME_MS + 1),
        ("event_type", ""),
        ("event_type", 5),
        ("event_version", 0),
        ("idempotency_key", None),
        ("idempotency_key", ""),
        ("idempotency_key", "\ud800"),
        ("ledger", "sync#acme#\ud800"),
        ("partitions", ["\ud800"]),
        ("occurred_at", "soon"),
        ("source", ""),
        ("sequence_position", "7"),
        ("sequence_position", 0),
        ("trace_id", ""),
        ("payload", None),
        ("payload", {"n": float("nan")}),
        ("payload", {"text": "\ud800"}),
        ("surprise", 1),
    ],
)
def test_nothing_outside_the_format_is_written(field: str, value: Any) -> None:
    """C10: the error names the field."""
    line = next(read_lines(written(EVENTS).finish().data))
    writer = EventWriter()
    with pytest.raises(BadRequest) as refused:
        writer.add_line({**line, field: value})
    assert refused.value.details["field"] == field
    assert len(writer) == 0


@pytest.mark.parametrize("line", [None, 5, "x", [1]])
def test_only_an_object_is_a_line(line: Any) -> None:
    """C10."""
    with pytest.raises(BadRequest) as refused:
        EventWriter().add_line(line)
    assert refused.value.details["field"] == "line"


@pytest.mark.parametrize("field", ["event_type", "idempotency_key", "source", "trace_id"])
@pytest.mark.parametrize("text", [" ", "\t", "x" * (MAX_TEXT_BYTES + 1)])
def test_a_line_may_have_texts_that_the_catalog_s_door_refuses(field: str, text: str) -> None:
    """C3: other doors commit them, and what is committed is archived."""
    writer = EventWriter()
    writer.add_line({**next(read_lines(written(EVENTS).finish().data)), field: text})
    assert next(read_lines(writer.finish().data))[field] == text


def test_an_object_holds_at_least_one_event() -> None:
    with pytest.raises(ValueError, match="at least one"):
        EventWriter().finish()


@given(st.sets(st.integers(1, 60)), st.integers(0, 61))
def test_ranges_are_the_set_they_were_made_of(positions: set[int], position: int) -> None:
    ranges = Ranges.of(positions)
    assert (position in ranges) == (position in positions)
    assert ranges.count == len(positions)
    assert ranges.last == max(positions, default=0)
    assert bool(ranges) == bool(positions)
    assert Ranges.joined(ranges) == ranges
    assert all(later[0] > earlier[1] + 1 for earlier, later in zip(ranges.spans, ranges.spans[1:], strict=False))
