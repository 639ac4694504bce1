"""What the prices are multiplied with beside the benchmarks: units that tests count, and what is assumed of AWS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HOURS_A_MONTH = 730
MINUTES_A_MONTH = 60 * HOURS_A_MONTH


@dataclass(frozen=True, slots=True)
class Units:
    reads: float = 0
    writes: float = 0
    puts: int = 0
    """Objects put."""
    sends: int = 0
    """Messages sent to queues."""


# Counted by tests/unit/runtime/test_costs.py, which runs the functions.

IDLE_RUNS: Mapping[str, Units] = {
    "sweep": Units(reads=27),
    "settle": Units(reads=8),
    "remind": Units(reads=1),
}
"""A run of a scheduled function on a hub that has nothing to do."""
FAN_OUT_RINGS = Units(reads=1, sends=1)
"""What a run adds to the benchmark's count: it looks for targets, and rings for the index."""
NOTE = Units(writes=1)
"""That a ledger has grown is noted by the first consumer that moves a cursor in a window of `WINDOW_MS`."""
ARCHIVE_OBJECT = Units(reads=3, writes=3, puts=1)
"""An object of one ledger with one page."""
LOG_BYTES: Mapping[str, int] = {"function": 500, "metrics": 300}
"""How long the line is that a function logs, and the one that it counts with; with an invocation's id and trace as on
AWS, which tests do not have, and the 26 bytes that CloudWatch adds to each."""


@dataclass(frozen=True, slots=True)
class Assumed:
    what: str
    value: float
    unit: str
    why: str


ROUND_TRIP = Assumed("a round trip to DynamoDB", 5, "ms", "single-digit milliseconds, as DynamoDB promises")
HANDLER = Assumed("beside its round trips, a warm call", 3, "ms", "decoding, token, log line, encoding")
QUEUE_CALL = Assumed("a call of SQS or S3", 20, "ms", "the usual in one region")
TARGET = Assumed("a target's answer to a request", 200, "ms", "yours may differ: a drain is billed while it waits")
FULL_CORE = Assumed(
    "memory with which a function has one whole core",
    1_769,
    "MB",
    "as Lambda's documentation says",
)
POLLERS = Assumed("pollers of an idle queue, each asking every 20 s", 5, "pollers", "Lambda starts five per mapping")
PLATFORM_LINES = Assumed("log lines of Lambda's own, per invocation", 400, "bytes", "START, END, REPORT")
ACCESS_LINE = Assumed("a line of the access log", 400, "bytes", "the template's format, filled in")
CLAIM = Assumed("a claim's row", 200, "bytes", "id, ledger, digest, and 100 bytes that DynamoDB adds")
JOB_RUN = Assumed("a run of a Glue job", 3, "minutes", "start included; little to do")

ASSUMED = (
    ROUND_TRIP,
    HANDLER,
    QUEUE_CALL,
    TARGET,
    FULL_CORE,
    POLLERS,
    PLATFORM_LINES,
    ACCESS_LINE,
    CLAIM,
    JOB_RUN,
)
