"""Costs: write units, calls and round trips of a commit and of the index, against the figures we hold."""

from __future__ import annotations

from typing import Any

from tests.bench.baselines import put_per_event, row, transaction_per_event
from tests.bench.events import KINDS, drafts
from tests.bench.overhead import overhead, overhead_row, undeflated_units
from tests.bench.report import Figure, Section, Table, at_most, exactly
from tests.bench.rig import Rig, own_rig
from tests.bench.scenarios import SCENARIOS, Measured, duplicate, fresh, old_head

SIZES = (1, 25, 100)
A_MINUTE = 60
"""Events of a ledger with one a second that go into the index at once."""


def run() -> Section:
    with own_rig() as rig:
        commits = [
            {"scenario": name, "payload": kind, "events": size, **scenario(rig, kind, size).row()}
            for name, scenario in SCENARIOS.items()
            for size in SIZES
            for kind in KINDS
        ]
        usual = [
            row(name, kind, 25, measure(rig, kind, 25))
            for name, measure in (
                ("TransactWriteItems: counter, event, dedupe", transaction_per_event),
                ("PutItem, no dedupe", put_per_event),
            )
            for kind in KINDS
        ]
        index = [_index_row(rig, pages, per_page) for pages, per_page in ((1_000, 1), (40, 25), (A_MINUTE, 1), (1, 1))]
        figures = [*held(rig), _index_figure(index)]
    return Section(
        [
            Table("commit", "Commit path (Claims and Log)", commits),
            Table("baselines", "Baselines, 25 events", usual),
            Table(
                "overhead",
                "Bytes of a page beside the events' content, not deflated",
                [overhead_row(size) for size in SIZES],
            ),
            Table("index", "Partition index (one run; Index and State), ten partitions", index),
        ],
        figures,
    )


def held(rig: Rig) -> list[Figure]:
    """The counted figures of a commit."""
    figures = []
    for kind in KINDS:
        one, many = fresh(rig, kind, 1), fresh(rig, kind, 25)
        figures += [
            exactly(f"one event alone, {kind}", "2 units, 2 calls", _units_calls(one)),
            at_most(f"25 events, {kind}: units per event", 1.6, many.units),
            exactly(f"25 events, {kind}: calls", "2", f"{many.calls:g}"),
            exactly(
                f"old head, {kind}", "2 units, 3 calls, 2 round trips", _units_calls_rounds(old_head(rig, kind, 1))
            ),
            exactly(f"duplicate, {kind}", "1 unit, 1 claim read, 1 page read", _duplicate(duplicate(rig, kind, 1))),
        ]
    figures += [
        at_most("25 events that deflate to nothing smaller: units per event", 1.6, undeflated_units(25)),
        at_most("overhead per event in a page of 25", 100, overhead(25), " bytes"),
        Figure(
            "units reported for writes follow the size rules",
            "all",
            f"{rig.tally.checked - len(rig.tally.differing)} of {rig.tally.checked}",
            rig.tally.checked > 0 and not rig.tally.differing,
        ),
    ]
    return figures


def _units_calls(measured: Measured) -> str:
    return f"{measured.units:g} units, {measured.calls:g} calls"


def _units_calls_rounds(measured: Measured) -> str:
    return f"{_units_calls(measured)}, {measured.rounds:g} round trips"


def _duplicate(measured: Measured) -> str:
    calls = measured.counts.calls
    claims, pages = calls["claims", "BatchGetItem"], calls["log", "Query"]
    return f"{measured.units:g} unit, {claims} claim read, {pages} page read"


def _index_figure(rows: list[dict[str, Any]]) -> Figure:
    (minute,) = (row for row in rows if row["events"] == A_MINUTE)
    return at_most("index, one event a second: units per event", 0.3, minute["write units per event"])


def _index_row(rig: Rig, pages: int, per_page: int) -> dict[str, Any]:
    ledger = rig.ledger()
    rig.fill(ledger, drafts("realistic", pages * per_page, 1), per_page)
    with rig.tally.measured() as counts:
        assert rig.index_partitions(ledger)
    events = pages * per_page
    return {
        "pages": pages,
        "events": events,
        "write units per event": round(counts.write_units("index", "state") / events, 4),
        "read units per event": round(counts.read_units("log", "index", "state") / events, 4),
        "calls": counts.calls_to("log", "index", "state"),
    }
