"""What is wrong with a hub, in plain words, and the command that helps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WARNING, ERROR = "warning", "error"
TARGETS = "targets"
LATE_SECONDS: Mapping[str, int] = {"fan_out": 60, "index": 300, "archive": 600, TARGETS: 300}
"""From here on a stage is late; ten times that is an error. The alarms have the same limits."""
FAR_TOO_LATE = 10
LOOK_AT_LOGS = "make logs"

Section = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """`paused` and `blocked` say why; empty: it is not. `given_up`: deliveries that nothing tries again by itself."""

    id: str
    paused: str = ""
    blocked: str = ""
    given_up: int = 0

    @property
    def stand(self) -> str:
        if self.paused:
            return "paused"
        return "blocked" if self.blocked else "well"


def problems(
    ledgers: Sequence[Section], targets: Sequence[TargetHealth], degraded: Sequence[tuple[str, int]]
) -> list[dict[str, str]]:
    """The worst first. `degraded`: scopes of streams, each with how many subscriptions have lost history."""
    silent = {one.id for one in targets if one.stand != "well"}
    found = [
        *(problem for ledger in ledgers for problem in _late(ledger, silent)),
        *(problem for target in targets for problem in _of_target(target)),
        *(_lost_history(scope, count) for scope, count in degraded),
    ]
    return sorted(found, key=lambda one: one["severity"] != ERROR)


def _late(ledger: Section, silent: set[str]) -> Iterator[dict[str, str]]:
    """What is late for a target that stands still is no news beside that."""
    contract, scope = ledger["contract"], ledger["scope"]
    readers = [(stage, stage, reader, LOOK_AT_LOGS) for stage, reader in ledger["stages"].items()]
    readers += [
        (TARGETS, f"Target {one['target_id']}", one, "millrace targets list")
        for one in ledger["targets"]
        if one["target_id"] not in silent
    ]
    for stage, name, reader, help_ in readers:
        seconds = reader["lag_seconds"]
        if seconds >= LATE_SECONDS[stage]:
            severity = ERROR if seconds >= FAR_TOO_LATE * LATE_SECONDS[stage] else WARNING
            yield _problem(
                severity, f"{name} is {seconds:.0f} s behind in {contract} {scope}.", f"{contract}/{scope}", help_
            )


def _of_target(target: TargetHealth) -> Iterator[dict[str, str]]:
    where = f"targets/{target.id}"
    if target.paused:
        yield _problem(
            WARNING, f"Target {target.id} is paused: {target.paused}.", where, f"millrace targets resume {target.id}"
        )
    elif target.blocked:
        yield _problem(ERROR, f"Target {target.id} gets nothing: {target.blocked}.", where, "millrace targets list")
    if target.given_up:
        events = "1 event" if target.given_up == 1 else f"{target.given_up} events"
        yield _problem(
            ERROR,
            f"Target {target.id} did not take {events}; the hub has given up on them.",
            where,
            f"millrace targets retry {target.id} --status terminal_failed",
        )


def _lost_history(scope: str, count: int) -> dict[str, str]:
    runtime_id, _, stream_id = scope.partition(":")
    subscriptions = "1 subscription has" if count == 1 else f"{count} subscriptions have"
    return _problem(
        WARNING,
        f"{subscriptions} lost history of streams {scope}: a reader has to poll without a cursor.",
        f"streams/{scope}",
        f"millrace streams poll {runtime_id} {stream_id}",
    )


def _problem(severity: str, what: str, where: str, help_: str) -> dict[str, str]:
    return {"severity": severity, "what": what, "where": where, "help": help_}
