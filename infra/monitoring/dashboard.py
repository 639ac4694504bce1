"""The dashboard: what it shows, in rows from left to right."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from infra.monitoring.hub import HubNames
from infra.monitoring.table import DEAD_LETTERS, LAG, QUEUE_LAG, watched_by
from infra.monitoring.things import BATCH_API, HTTP_API, OWN, SOCKET_API, Thing, function, table
from millrace.ledger.domain.metrics import Metric

COLUMNS = 24
HEIGHT = 6

EVENTS = (Metric.EVENTS_COMMITTED, Metric.EVENTS_DEDUPLICATED, Metric.EVENTS_REFUSED, Metric.EVENTS_ARCHIVED)
CONTENTION = (Metric.PUTS_LOST, Metric.CLAIMS_RETRIED, Metric.COMMITS_GIVEN_UP)
DELIVERIES = (Metric.DELIVERIES, Metric.DRAINS_FAILED)

Series = Sequence[Any]
"""A line of a graph, as CloudWatch writes it."""


@dataclass(frozen=True, slots=True)
class Widget:
    title: str
    statistic: str
    lines: Sequence[Series]
    width: int = 8


def resource(hub: HubNames) -> dict[str, Any]:
    widgets = ",\n".join(json.dumps(widget) for widget in _placed(_widgets(hub)))
    return {
        "Type": "AWS::CloudWatch::Dashboard",
        "Properties": {
            "DashboardName": {"Ref": "Hub"},
            "DashboardBody": {"Fn::Sub": f'{{"widgets": [\n{widgets}\n]}}\n'},
        },
    }


def _widgets(hub: HubNames) -> list[Widget]:
    functions = [function(name) for name in hub.functions]
    tables = [table(name) for name in hub.tables]
    return [
        Widget("Requests", "Sum", [*_metrics([HTTP_API], "Count", "4xx", "5xx"), *_metrics([BATCH_API], "Count")]),
        Widget("Time to answer (ms)", "p95", _percentiles(HTTP_API, "Latency")),
        Widget("Events", "Sum", _counted("events", EVENTS)),
        Widget("Function errors and throttles", "Sum", _metrics(functions, "Errors", "Throttles")),
        Widget("Function duration, p95 (ms)", "p95", _metrics(functions, "Duration")),
        Widget("Functions at work", "Maximum", _metrics(functions, "ConcurrentExecutions")),
        Widget("Lag: stream (ms)", "Maximum", _metrics(watched_by(LAG), LAG.metric)),
        Widget("Lag: queues (s)", "Maximum", _metrics(watched_by(QUEUE_LAG), QUEUE_LAG.metric)),
        Widget("Dead letters", "Maximum", _metrics(watched_by(DEAD_LETTERS), DEAD_LETTERS.metric)),
        Widget("Write units", "Sum", _metrics(tables, "ConsumedWriteCapacityUnits")),
        Widget("Read units", "Sum", _metrics(tables, "ConsumedReadCapacityUnits")),
        Widget("Throttled reads and writes", "Sum", _metrics(tables, "ReadThrottleEvents", "WriteThrottleEvents")),
        Widget("Connections and messages", "Sum", _metrics([SOCKET_API], "ConnectCount", "MessageCount")),
        Widget("WebSocket errors", "Sum", _metrics([SOCKET_API], "ClientError", "IntegrationError", "ExecutionError")),
        Widget("Time to answer a message (ms)", "p95", _percentiles(SOCKET_API, "IntegrationLatency")),
        Widget("Deliveries", "Sum", _counted("deliveries", DELIVERIES), width=COLUMNS // 2),
        Widget("Writers that met on one ledger", "Sum", _counted("contention", CONTENTION), width=COLUMNS // 2),
    ]


def _metrics(things: Sequence[Thing], *metrics: str) -> list[Series]:
    return [_line(thing, metric) for metric in metrics for thing in things]


def _percentiles(thing: Thing, metric: str) -> list[Series]:
    return [[*_line(thing, metric), {"stat": stat}] for stat in ("p50", "p95", "p99")]


def _line(thing: Thing, metric: str) -> Series:
    dimensions = [text for dimension in thing.dimensions.items() for text in dimension]
    return [thing.namespace, metric, *dimensions]


def _counted(name: str, metrics: Iterable[Metric]) -> list[Series]:
    """What the hub counts itself, whatever its dimensions."""
    names = " OR ".join(metrics)
    return [[{"expression": f"SEARCH('Namespace=\"{OWN}\" MetricName=({names})', 'Sum', 60)", "id": name}]]


def _placed(widgets: Iterable[Widget]) -> Iterator[dict[str, Any]]:
    x = y = 0
    for widget in widgets:
        if x + widget.width > COLUMNS:
            x, y = 0, y + HEIGHT
        properties = {
            "title": widget.title,
            "region": "${AWS::Region}",
            "stat": widget.statistic,
            "period": 60,
            "metrics": widget.lines,
        }
        yield {"type": "metric", "x": x, "y": y, "width": widget.width, "height": HEIGHT, "properties": properties}
        x += widget.width
