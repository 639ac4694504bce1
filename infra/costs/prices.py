"""List prices: the one table that docs/costs.md is computed with. Change a price here, then run `make generated`."""

from __future__ import annotations

from dataclasses import dataclass

REGION = "us-east-1"
DATE = "July 2025"
"""When these prices were the list prices. They hold for on-demand use, without free tiers, discounts and taxes."""

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    unit: str
    dollars: float
    per: int
    """So many units cost that."""
    service: str
    """Whose page of prices has it."""

    def of(self, units: float) -> float:
        return units * self.dollars / self.per

    @property
    def text(self) -> str:
        each = "" if self.per == 1 else "million " if self.per == MILLION else f"{self.per:,} "
        dollars = f"{self.dollars:.2f}" if round(self.dollars, 2) == self.dollars else f"{self.dollars:g}"
        return f"${dollars} per {each}{self.unit}"


WRITE_UNIT = Price("write units", 0.625, MILLION, "DynamoDB, on-demand")
READ_UNIT = Price("read units", 0.125, MILLION, "DynamoDB, on-demand")
TABLE_GB = Price("GB stored for a month", 0.25, 1, "DynamoDB, on-demand")
RECOVERY_GB = Price("GB of point-in-time recovery for a month", 0.20, 1, "DynamoDB, on-demand")
INVOCATION = Price("invocations", 0.20, MILLION, "Lambda")
GB_SECOND = Price("GB-seconds on arm64", 13.3334, MILLION, "Lambda")
SNAPSHOT_GB_SECOND = Price("GB-seconds of a kept SnapStart version", 1.5046, MILLION, "Lambda")
HTTP_REQUEST = Price("HTTP API requests", 1.00, MILLION, "API Gateway")
REST_REQUEST = Price("REST API requests", 3.50, MILLION, "API Gateway")
SOCKET_MESSAGE = Price("WebSocket messages (32 KB each, in or out)", 1.00, MILLION, "API Gateway")
CONNECTION_MINUTE = Price("WebSocket connection minutes", 0.25, MILLION, "API Gateway")
QUEUE_REQUEST = Price("queue requests", 0.40, MILLION, "SQS, standard queues")
OBJECT_PUT = Price("object puts", 0.005, 1_000, "S3 Standard")
OBJECT_GB = Price("GB of objects for a month", 0.023, 1, "S3 Standard")
ALARM = Price("metric watched by an alarm, a month", 0.10, 1, "CloudWatch")
METRIC = Price("metric of one's own, a month", 0.30, 1, "CloudWatch")
DASHBOARD = Price("dashboard, a month", 3.00, 1, "CloudWatch")
LOG_GB = Price("GB of log lines taken in", 0.50, 1, "CloudWatch")
SECRET = Price("secret, a month", 0.40, 1, "Secrets Manager")
TICK = Price("scheduled events", 1.00, MILLION, "EventBridge")
WORKER_HOUR = Price("DPU-hour", 0.44, 1, "Glue")
OUT_GB = Price("GB sent to the internet", 0.09, 1, "EC2, data transfer")

PRICES = (
    WRITE_UNIT,
    READ_UNIT,
    TABLE_GB,
    RECOVERY_GB,
    INVOCATION,
    GB_SECOND,
    SNAPSHOT_GB_SECOND,
    HTTP_REQUEST,
    REST_REQUEST,
    SOCKET_MESSAGE,
    CONNECTION_MINUTE,
    QUEUE_REQUEST,
    OBJECT_PUT,
    OBJECT_GB,
    ALARM,
    METRIC,
    DASHBOARD,
    LOG_GB,
    SECRET,
    TICK,
    WORKER_HOUR,
    OUT_GB,
)
