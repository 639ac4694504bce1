"""The report, the options, and what the documentation says of them."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import replace
from pathlib import Path

from tests.chaos.__main__ import parsed, plan_of
from tests.chaos.checks import PROMISES, broken
from tests.chaos.plan import SMALL, Plan
from tests.chaos.report import as_text, document, summary
from tests.chaos.run import Outcome
from tests.chaos.settle import wait_for_all
from tests.chaos.test_checks import GOOD, seen

LATEST = Path(__file__).with_name("latest.json")
PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"


def outcome(evidence: object = GOOD, deliveries: float = 12.34) -> Outcome:
    waited = {
        "deliveries": deliveries,
        "deliveries of the others": 3.0,
        "followers": 1.0,
        "pollers": 1.0,
        "archive": 2.0,
    }
    found = broken(evidence)  # type: ignore[arg-type]
    counts = {"seconds of pauses": 2, "killed deliver": 3}
    return Outcome(SMALL, evidence, found, counts, {"deliver": 3}, waited, 60)  # type: ignore[arg-type]


def test_a_report_is_json_and_says_what_was_kept() -> None:
    told = json.loads(as_text(document(outcome())))
    assert told["kept"] is True
    assert told["counts"]["events acknowledged"] == 3
    assert told["complete_after_seconds"]["deliveries"] == 12.3
    assert told["delays"]["broadcast"] == {"p99_alone": 0.2, "p99_flooded": 0.6, "ratio": 3.0}
    assert "| promises kept | 14 of 14 |" in summary(told)


def test_a_broken_promise_is_told_by_its_name() -> None:
    told = json.loads(as_text(document(outcome(replace(seen(), delivered_after=math.inf), deliveries=math.inf))))
    assert told["kept"] is False
    assert told["promises"]["readers and followers see the ledger"]["broken"] == 1
    lines = summary(told)
    assert "| deliveries complete | never |" in lines
    assert "| broken | readers and followers see the ledger; deliveries are complete in time |" in lines


def test_options_change_the_plan() -> None:
    assert plan_of(parsed([])) == Plan()
    assert plan_of(parsed(["--small"])) == SMALL
    changed = plan_of(parsed(["--events", "5", "--pause-seconds", "1", "--spare", "deliver"]))
    assert changed == replace(Plan(), events=5, pause_seconds=1, spared=frozenset({"deliver"}))


def test_the_full_size_is_what_we_promise_to_run() -> None:
    full = Plan()
    assert (full.kills, full.pause_seconds, full.events) >= (100, 60, 10_000)
    assert (full.bound_seconds, full.ratio) == (60, 3)


def test_the_documentation_names_every_promise() -> None:
    told = re.findall(r"^\| ([^|]+) \|", PAGE.read_text().partition("### Chaos")[2], re.MULTILINE)
    assert [name for name in told if name in PROMISES] == list(PROMISES)


def test_the_documentation_shows_the_latest_full_run() -> None:
    """`latest.json` is the report of that run, as it was written."""
    lines = summary(json.loads(LATEST.read_text())) if LATEST.exists() else []
    shown = PAGE.read_text().partition("The latest full run")[2]
    assert [line for line in shown.splitlines() if line.startswith("|")] == lines


def test_what_is_late_is_waited_for_as_long_as_something_comes() -> None:
    """So that a run says how long it took, and not only that it took too long."""
    came = [0]

    def complete() -> bool:
        came[0] = min(came[0] + 1, 40)
        return came[0] == 40

    waited = wait_for_all(time.monotonic(), 0.1, {"late": complete, "lost": lambda: False}, lambda: came[0], every=0.01)
    assert waited["late"] > 0.1, "longer than the patience with which nothing is waited for"
    assert math.isinf(waited["lost"])
