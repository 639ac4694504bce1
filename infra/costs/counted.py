"""What there is to pay for, counted where it stands: the templates and the results of the benchmarks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from infra import cloudformation
from infra.monitoring import build
from infra.monitoring.alarm import ALL
from infra.monitoring.hub import TEMPLATE, read_hub

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "tests/bench/results.json"
_RATE = re.compile(r"rate\((\d+) minutes?\)")


@dataclass(frozen=True, slots=True)
class HubTemplates:
    """The templates, as a deployment with default parameters makes them."""

    template: Mapping[str, Any]
    monitoring: Mapping[str, Any]

    def of_type(self, kind: str) -> Mapping[str, Any]:
        resources = self.template["Resources"].items()
        return {name: one["Properties"] for name, one in resources if one["Type"] == kind}

    @property
    def functions(self) -> Mapping[str, Any]:
        """By their names in the source: `fan_out`."""
        return {one["CodeUri"].split("/")[1]: one for one in self.of_type("AWS::Serverless::Function").values()}

    def memory(self, function: str) -> int:
        default = self.template["Globals"]["Function"]["MemorySize"]
        return int(self.functions[function].get("MemorySize", default))

    @property
    def ticks(self) -> Mapping[str, float]:
        """Scheduled function → minutes between two runs."""
        return {name: _minutes(event["Schedule"]) for name, event in self._events("Schedule")}

    @property
    def polled_queues(self) -> int:
        return len(self._events("SQS"))

    @property
    def snapshots(self) -> Sequence[str]:
        """Functions of which SnapStart would keep a version."""
        return [name for name, one in self.functions.items() if "SnapStart" in one]

    def alarms(self, asked: str | None = None) -> int:
        """The metrics that alarms watch, which is what is billed: one each, or those of an expression."""
        asked = asked or self.template["Parameters"]["Alarms"]["Default"]
        made = [
            one["Properties"]
            for one in self.monitoring["Resources"].values()
            if one["Type"] == "AWS::CloudWatch::Alarm" and (asked == "all" or one.get("Condition") != ALL)
        ]
        return sum(_metrics(alarm) for alarm in made)

    @property
    def dashboards(self) -> int:
        return sum(one["Type"] == "AWS::CloudWatch::Dashboard" for one in self.monitoring["Resources"].values())

    def _events(self, kind: str) -> list[tuple[str, Any]]:
        return [
            (name, event["Properties"])
            for name, function in self.functions.items()
            for event in function.get("Events", {}).values()
            if event["Type"] == kind
        ]


@cache
def hub() -> HubTemplates:
    return HubTemplates(cloudformation.parse(TEMPLATE.read_text()), build.stack(read_hub()))


@cache
def _results() -> Any:
    return json.loads(RESULTS.read_text())["sections"]


def measured(section: str, table: str, **wanted: object) -> Mapping[str, Any]:
    """The one row of a benchmark's table that has these values."""
    rows = [row for row in _results()[section]["tables"][table] if wanted.items() <= row.items()]
    if len(rows) != 1:
        raise LookupError(f"{RESULTS.name} has {len(rows)} rows of {section}.{table} with {wanted}.")
    found: Mapping[str, Any] = rows[0]
    return found


def average(section: str, table: str, column: str) -> float:
    rows = _results()[section]["tables"][table]
    return float(sum(row[column] for row in rows) / len(rows))


def _metrics(alarm: Mapping[str, Any]) -> int:
    return sum("MetricStat" in metric for metric in alarm["Metrics"]) if "Metrics" in alarm else 1


def _minutes(schedule: str) -> float:
    found = _RATE.fullmatch(schedule)
    if not found:
        raise ValueError(f"A schedule that is no rate in minutes: {schedule}")
    return float(found[1])
