"""Streams: CPU of polls, emissions and redaction, and what polls, emissions, transitions and markers cost."""

from __future__ import annotations

from tests.bench import privacy_cpu, stream_cpu
from tests.bench.report import Figure, Section, Table, at_most, exactly
from tests.bench.rig import Rig, own_rig
from tests.bench.stream_costs import (
    ACROSS_BUCKETS,
    MOVES,
    PER_PAGE,
    Cost,
    emission,
    emit_rows,
    marker_rows,
    markers,
    poll_rows,
    polls,
    transition,
)
from tests.bench.sync import ROUND_TRIPS


def run() -> Section:
    cpu = [
        Table("poll_cpu", f"CPU of a poll, µs per event, best of {stream_cpu.REPETITIONS}", stream_cpu.poll_rows()),
        Table(
            "emit_cpu", f"CPU of an emission, µs per event, best of {stream_cpu.REPETITIONS}", stream_cpu.emit_rows()
        ),
        Table("privacy_cpu", f"CPU of redaction, µs per KB, best of {privacy_cpu.REPETITIONS}", privacy_cpu.rows()),
    ]
    with own_rig() as rig:
        counted = [
            Table("poll", "Polls of one stream (Log and State)", poll_rows(rig)),
            Table("emit", "Emissions (Claims, Log and State), by a warm process", emit_rows(rig)),
            Table("markers", "Markers (Claims, Log and State), by a warm process", marker_rows(rig)),
        ]
        figures = held(rig)
    return Section([*counted, *cpu], figures)


def held(rig: Rig) -> list[Figure]:
    """The counted figures of streams."""
    figures = []
    for per_page in PER_PAGE:
        for name, (_, cost) in polls(rig, per_page, ACROSS_BUCKETS).items():
            title = f"poll {name}, {per_page} a page: round trips after the cursor is verified"
            figures.append(at_most(title, ROUND_TRIPS, cost.rounds))
    many, moved = emission(rig, 25), markers(rig)
    return [
        *figures,
        exactly("one stream event alone", "2 units written, 2 read, 4 calls", _told(emission(rig, 1))),
        at_most("25 stream events: write units per event", 1.6, many.writes / 25),
        exactly("25 stream events: calls", "4", f"{many.calls:g}"),
        exactly("a duplicate", "1 units written, 4 read, 5 calls", _told(emission(rig, 1, again=True))),
        exactly("a delivery transition alone", "4 units written, 3 read, 7 calls", _told(transition(rig, 1))),
        exactly("25 transitions of 25 messages: round trips", "6", f"{transition(rig, 25).rounds}"),
        *(
            exactly(f"marker, {name}", "6 units written, 2 read, 8 calls", _told(moved[name]))
            for name in ("first move", f"move after {MOVES - 1} others")
        ),
        exactly("a stale move", "0 units written, 2 read, 2 calls", _told(moved["move with a stale revision"])),
    ]


def _told(cost: Cost) -> str:
    return f"{cost.writes} units written, {cost.reads:g} read, {cost.calls:g} calls"
