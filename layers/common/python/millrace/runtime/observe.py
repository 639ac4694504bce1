"""Logs and metrics: one structured line per invocation. Payload values, tokens and secrets never go in."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.logging import Logger

from millrace.ledger.domain.errors import MillraceError
from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aws_lambda_powertools.metrics import EphemeralMetrics

    from millrace.ledger.application.failures import Failures
    from millrace.ledger.domain.errors import UnreadableRow
    from millrace.ledger.domain.metrics import Metric
    from millrace.ledger.domain.names import Ledger


@cache
def logger() -> Logger:
    return Logger()


HUB = "hub"
"""The service of what is counted for the hub as a whole, whichever function met it: one alarm hears of all."""


def count(metrics: Mapping[Metric, int], by: str | None = None, **dimensions: str) -> None:
    """Emit counters in CloudWatch's embedded format; zeros are left out. `by`: the service, if not this function."""
    from aws_lambda_powertools.metrics import MetricUnit

    present = {name: value for name, value in metrics.items() if value}
    if not present:
        return
    emitter = _metrics(by)
    for dimension, of in dimensions.items():
        emitter.add_dimension(dimension, of)
    for name, value in present.items():
        emitter.add_metric(name=name, unit=MetricUnit.Count, value=value)
    emitter.flush_metrics()


def tell(ledger: Ledger, counts: Mapping[Metric, int]) -> None:
    """What the core tells, counted by contract."""
    count(counts, contract=ledger.contract)


def _metrics(service: str | None = None) -> EphemeralMetrics:
    from aws_lambda_powertools.metrics import EphemeralMetrics

    return EphemeralMetrics(namespace=setting("POWERTOOLS_METRICS_NAMESPACE", "Millrace"), service=service)


def fields(**values: Any) -> dict[str, Any]:
    """Log fields without the absent ones."""
    return {name: value for name, value in values.items() if value is not None}


def unreadable(row: UnreadableRow) -> None:
    """A stored row that was passed over: somebody has to put it right."""
    from millrace.ledger.domain.metrics import Metric

    logger().error("unreadable_row", **row.details)
    count({Metric.ROWS_UNREADABLE: 1}, HUB)


def report(failures: Failures) -> None:
    """Log what a worker could not do, then raise the first: the platform calls it again, and its alarm goes off."""
    for failure in (*failures.passed_on, *failures.found):
        error = failure.error
        reason = error.message if isinstance(error, MillraceError) else type(error).__name__
        logger().error(f"{failure.step}_failed", subject=failure.subject, reason=reason, exc_info=error)
    failures.raise_first()


class Audit:
    """What was done by hand, as log lines."""

    def audit(self, what: str, subjects: Sequence[str], detail: str, now_ms: int) -> None:
        logger().info("audit", action=what, subjects=list(subjects), detail=detail, ts_ms=now_ms)
