"""The report of a run: counts, times and promises, for people and as JSON."""

from __future__ import annotations

import json
import math
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.chaos.evidence import Evidence, p99
from tests.chaos.run import Outcome

EXAMPLES = 5


def document(outcome: Outcome) -> dict[str, Any]:
    evidence = outcome.evidence
    plan = {**asdict(outcome.plan), "spared": sorted(outcome.plan.spared)}
    return {
        "python": platform.python_version(),
        "plan": plan,
        "seconds": round(outcome.seconds),
        "counts": {**_counts(evidence), **dict(sorted(outcome.counts.items()))},
        "kills": dict(sorted(outcome.kills.items())),
        "complete_after_seconds": {name: _number(seconds) for name, seconds in outcome.waited.items()},
        "delays": {
            delay.name: {
                "p99_alone": _number(p99(delay.alone), 3),
                "p99_flooded": _number(p99(delay.flooded), 3),
                "ratio": _number(delay.ratio, 2),
            }
            for delay in evidence.delays
        },
        "storage": {
            "mean_ms_alone": _number(1000 * _mean(evidence.calls.alone)),
            "mean_ms_flooded": _number(1000 * _mean(evidence.calls.flooded)),
            "slowdown": _number(evidence.calls.slowdown, 2),
        },
        "promises": {
            name: {"broken": len(problems), "examples": problems[:EXAMPLES]}
            for name, problems in outcome.broken.items()
        },
        "kept": not any(outcome.broken.values()),
    }


def _counts(evidence: Evidence) -> dict[str, Any]:
    posts = [post for target in evidence.targets for post in target.posts]
    doubles = sum(
        count - 1
        for target in evidence.targets
        for count in Counter(id_ for post in target.posts if post.taken for id_ in post.ids).values()
    )
    return {
        "tenants": len({view.tenant for view in evidence.views}),
        "ledgers": len(evidence.log),
        "events acknowledged": len({(answer.ledger, answer.id) for answer in evidence.answers}),
        "answers": len(evidence.answers),
        "events in the log": sum(len(sights) for sights in evidence.log.values()),
        "events in the archive": sum(len(sights) for sights in evidence.archive.values()),
        "targets": len(evidence.targets),
        "deliveries": sum(len(target.deliveries) for target in evidence.targets),
        "requests to targets": len(posts),
        "events taken twice": doubles,
        **{size.name: size.reached for size in evidence.sizes if size.wanted > 1},
    }


def _mean(seconds: Sequence[float]) -> float:
    return fmean(seconds) if seconds else math.inf


def _number(value: float, digits: int = 1) -> float | None:
    """JSON has no infinity: None is never."""
    return round(value, digits) if math.isfinite(value) else None


def as_text(report: Mapping[str, Any]) -> str:
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


def show(console: Console, report: Mapping[str, Any]) -> None:
    numbers = Table("what", "how much", title="chaos", title_justify="left")
    kills = ", ".join(f"{kind} {count}" for kind, count in report["kills"].items())
    lines = {**report["counts"], "killed": kills, "seconds": report["seconds"]}
    lines = {name: value for name, value in lines.items() if not name.startswith("killed ")}
    lines |= {f"{name} complete after, s": value for name, value in report["complete_after_seconds"].items()}
    for name, delay in report["delays"].items():
        lines[f"{name} p99, s"] = f"{delay['p99_alone']} alone, {delay['p99_flooded']} flooded: {delay['ratio']} times"
    lines["a call of storage"] = _call(report)
    for name, value in lines.items():
        numbers.add_row(name, str(value))
    console.print(numbers)
    promises = Table("promise", "kept", title="promises", title_justify="left")
    for name, found in report["promises"].items():
        promises.add_row(name, f"[bold red]NO[/], {found['broken']} times" if found["broken"] else "yes")
    console.print(promises)


def summary(report: Mapping[str, Any]) -> list[str]:
    """The lines of a short table, as the documentation shows it."""
    counts, kills, after = report["counts"], report["kills"], report["complete_after_seconds"]
    broken = [name for name, found in report["promises"].items() if found["broken"]]
    rows = {
        "acknowledged events": f"{counts['events acknowledged']:,} of {counts['tenants']} tenants",
        "ledgers": f"{counts['ledgers']}",
        "killed processes": f"{sum(kills.values())}, of them {kills.get('deliver', 0)} of `deliver`",
        "pauses of the emulator": f"{counts['seconds of pauses']:g} s in all",
        "deliveries": f"{counts['deliveries']:,} to {counts['targets']} targets",
        "requests to targets": f"{counts['requests to targets']:,}",
        "events that a target took twice": f"{counts['events taken twice']}",
        "deliveries complete": _after(after["deliveries"]),
        "those of the tenants that do not flood": _after(after["deliveries of the others"]),
        "followers complete": _after(after["followers"]),
        "archive complete": _after(after["archive"]),
    }
    for name, delay in report["delays"].items():
        rows[f"{name} p99 of a neighbour, alone and in a flood"] = (
            f"{delay['p99_alone']} s, {delay['p99_flooded']} s: {delay['ratio']} times"
        )
    rows["a call of storage itself, alone and in that flood"] = _call(report)
    rows["promises kept"] = f"{len(report['promises']) - len(broken)} of {len(report['promises'])}"
    if broken:
        rows["broken"] = "; ".join(broken)
    return ["| what | how much |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]


def _call(report: Mapping[str, Any]) -> str:
    storage = report["storage"]
    return f"{storage['mean_ms_alone']} ms, {storage['mean_ms_flooded']} ms: {storage['slowdown']} times"


def _after(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:g} s after the last fault and the last write"
