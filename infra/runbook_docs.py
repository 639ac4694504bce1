"""Makes the tables of docs/operations.md, alarms and limits of concurrency: `make generated`. The rest is by hand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from infra import cloudformation
from infra.monitoring import table
from infra.monitoring.alarm import Alarm, AlarmKind
from infra.monitoring.build import alarms
from infra.monitoring.hub import TEMPLATE, read_hub

PAGE = Path(__file__).parents[1] / "docs/operations.md"

NIGHT: Mapping[str, Sequence[AlarmKind]] = {
    "lost": (table.LOST,),
    "refused": (
        table.FAILURES,
        table.REST_FAILURES,
        table.EXECUTION_ERRORS,
        table.INTEGRATION_ERRORS,
        table.GIVEN_UP,
        table.WRITE_THROTTLES,
        table.READ_THROTTLES,
        table.WAITS,
    ),
    "late": (table.LAG, table.QUEUE_LAG, table.CALL_LAG, table.FAILED),
    "repair": (table.SILENCE, table.DEAD_LETTERS, table.UNREADABLE),
    "cause": (table.ERRORS, table.THROTTLES),
}
"""The kinds of alarms in the order of a bad night: what is lost, who is refused, what is late, what repairs it, why."""

ALIKE = 2
"""So many alarms that differ in nothing but a name share a row."""


def in_part(part: str) -> list[Alarm]:
    names = [kind.name for kind in NIGHT[part]]
    found = [alarm for alarm in alarms(read_hub()) if alarm.kind.name in names]
    return sorted(found, key=lambda alarm: names.index(alarm.kind.name))


def _rows(found: Iterable[Alarm]) -> Iterable[str]:
    alike: dict[tuple[str, str, str], list[Alarm]] = {}
    for alarm in found:
        alike.setdefault((alarm.kind.name, _unnamed(alarm, alarm.wrong), _unnamed(alarm, alarm.do)), []).append(alarm)
    for (kind, wrong, do), group in alike.items():
        if len(group) > ALIKE:
            things = ", ".join(alarm.thing.name for alarm in group)
            yield f"| `NAME-{kind}` for {things}{_asked(group[0])} | {wrong} | {do} |"
        else:
            yield from (f"| `{alarm.name}`{_asked(alarm)} | {alarm.wrong} | {alarm.do} |" for alarm in group)


def _unnamed(alarm: Alarm, text: str) -> str:
    return re.sub(rf"(function|table) {re.escape(alarm.thing.name)}\b", r"\1 NAME", text)


def _asked(alarm: Alarm) -> str:
    return ", with `Alarms=all`" if alarm.shown_by else ""


def _night(part: str) -> str:
    head = ["| alarm | what is wrong | what to do |", "|---|---|---|"]
    return "\n".join(["", *head, *_rows(in_part(part)), "", ""])


def _concurrency() -> str:
    """What bounds how many of a function run at once, where the template bounds it."""
    template = cloudformation.parse(TEMPLATE.read_text())
    rows = []
    for resource in template["Resources"].values():
        for event in resource.get("Properties", {}).get("Events", {}).values():
            properties = event["Properties"]
            if event["Type"] == "SQS":
                queue = template["Resources"][properties["Queue"]["Fn::GetAtt"][0]]["Properties"]["QueueName"]
                rows.append(_bound(resource["Properties"], f"queue `{_name(queue)}`", properties))
            elif event["Type"] == "DynamoDB":
                rows.append(_bound(resource["Properties"], "the log's stream", properties))
    head = ["| function | reads from | messages or records a call | at once |", "|---|---|---|---|"]
    return "\n".join(["", *head, *rows, "", ""])


def _bound(function: Mapping[str, Any], source: str, mapping: Mapping[str, Any]) -> str:
    most = mapping.get("ScalingConfig", {}).get("MaximumConcurrency", "1 per shard")
    return f"| `{_name(function['FunctionName'])}` | {source} | {mapping['BatchSize']} | {most} |"


def _name(value: Mapping[str, str]) -> str:
    return value["Fn::Sub"].removeprefix("${AWS::StackName}-")


_MARKED = re.compile(r"(<!-- (\w+): make generated -->\n).*?(<!-- end -->\n)", re.DOTALL)


def parts() -> dict[str, str]:
    """What stands on the page between `<!-- NAME: make generated -->` and `<!-- end -->`."""
    return {**{part: _night(part) for part in NIGHT}, "concurrency": _concurrency()}


def files() -> dict[Path, str]:
    made = parts()
    return {PAGE: _MARKED.sub(lambda found: found[1] + made[found[2]] + found[3], PAGE.read_text())}
