"""What a hub costs in a month in which nothing happens, with default parameters; and what some parameters add."""

from __future__ import annotations

from infra.costs.counted import hub
from infra.costs.held import HOURS_A_MONTH, IDLE_RUNS, JOB_RUN, MINUTES_A_MONTH, POLLERS
from infra.costs.lines import Bill, BillLine, Call, units
from infra.costs.prices import (
    ALARM,
    DASHBOARD,
    METRIC,
    QUEUE_REQUEST,
    SECRET,
    SNAPSHOT_GB_SECOND,
    TICK,
    WORKER_HOUR,
)

POLLS_A_MINUTE = 3
DAYS_A_MONTH = HOURS_A_MONTH / 24


def lines() -> list[Bill]:
    """By what is billed."""
    secrets = len(hub().of_type("AWS::SecretsManager::Secret"))
    polls = hub().polled_queues * POLLERS.value * POLLS_A_MINUTE * MINUTES_A_MONTH
    alarms, dashboards = hub().alarms(), hub().dashboards
    return [
        Bill("alarms", [BillLine(alarms, ALARM, f"{alarms} alarms")]),
        Bill("the dashboard", [BillLine(dashboards, DASHBOARD, f"{dashboards} dashboard")]),
        Bill(
            "empty polls of the queues",
            [
                BillLine(
                    polls, QUEUE_REQUEST, f"{hub().polled_queues} queues × 5 pollers × 3 a minute × {MINUTES_A_MONTH:,}"
                )
            ],
        ),
        Bill("secrets", [BillLine(secrets, SECRET, f"{secrets} secrets")]),
        *(_scheduled(name, minutes) for name, minutes in hub().ticks.items()),
    ]


def _scheduled(name: str, minutes: float) -> Bill:
    runs, done = MINUTES_A_MONTH / minutes, IDLE_RUNS[name]
    call = Call(hub().memory(name), round_trips=done.reads + done.writes)
    run = Bill("", [BillLine(1, TICK, "1 scheduled event"), *call.lines(), *units(done.writes, done.reads)])
    return run.times(runs, f"the function {name}, every {minutes:g} min")


def monthly() -> float:
    return sum(bill.dollars for bill in lines())


def options() -> list[Bill]:
    """What parameters and use add to that."""
    more = hub().alarms("all") - hub().alarms()
    gb = sum(hub().memory(name) for name in hub().snapshots) / 1_024
    seconds = HOURS_A_MONTH * 3_600
    workers = hub().template["Parameters"]["JobWorkers"]["Default"]
    hours = workers * JOB_RUN.value / 60
    compactions, retentions = HOURS_A_MONTH, DAYS_A_MONTH
    job = f"{workers} DPU × {JOB_RUN.value:g} min"
    return [
        Bill("`Alarms=all`", [BillLine(more, ALARM, f"{more} more alarms")]),
        Bill(
            "`RunJobs=true`, with the schedules of the template",
            [
                BillLine(compactions * hours, WORKER_HOUR, f"{compactions:,} compactions × {job}"),
                BillLine(retentions * hours, WORKER_HOUR, f"{retentions:.1f} retentions × {job}"),
            ],
        ),
        Bill(
            "`SnapStart=PublishedVersions`",
            [
                BillLine(
                    gb * seconds, SNAPSHOT_GB_SECOND, f"{len(hub().snapshots)} versions, {gb:.4g} GB × {seconds:,} s"
                )
            ],
        ),
        Bill(
            "each metric of the hub's own that is counted", [BillLine(1, METRIC, "1 metric (name, function, contract)")]
        ),
        Bill(
            "each contract in use, as a rule", [BillLine(3, METRIC, "EventsCommitted, EventsArchived, ArchiveObjects")]
        ),
    ]
