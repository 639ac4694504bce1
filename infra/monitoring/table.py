"""The table of alarms: what is watched, for what, and what to do. Functions and DynamoDB tables need no row here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from infra.monitoring.alarm import Alarm, AlarmKind
from infra.monitoring.things import (
    ARCHIVE,
    BATCH_API,
    DRAIN,
    HTTP_API,
    HUB,
    SOCKET_API,
    Thing,
    dead_letters,
    function,
    queue,
    table,
    writer,
)
from millrace.ledger.domain.metrics import Metric

FAILURES = AlarmKind("failures", "5xx", threshold=5)
REST_FAILURES = AlarmKind("failures", "5XXError", threshold=5)
INTEGRATION_ERRORS = AlarmKind("integration-errors", "IntegrationError", threshold=5)
EXECUTION_ERRORS = AlarmKind("execution-errors", "ExecutionError", threshold=5)
ERRORS = AlarmKind("errors", "Errors")
THROTTLES = AlarmKind("throttles", "Throttles")
LAG = AlarmKind("lag", "IteratorAge", "Maximum", seconds=60, in_a_row=5)
CALL_LAG = AlarmKind("call-lag", "AsyncEventAge", "Maximum", seconds=60, in_a_row=5)
SILENCE = AlarmKind("silence", "Invocations", comparison="LessThanThreshold", threshold=1, missing="breaching")
LOST = AlarmKind("lost", Metric.EVENTS_PRUNED_UNARCHIVED)
GIVEN_UP = AlarmKind("given-up", Metric.COMMITS_GIVEN_UP)
WAITS = AlarmKind("waits", Metric.WAITED_MS, "Average", seconds=60, in_a_row=5, threshold=1_000)
UNREADABLE = AlarmKind("unreadable-rows", Metric.ROWS_UNREADABLE)
FAILED = AlarmKind("failed", Metric.DRAINS_FAILED, in_a_row=3)
QUEUE_LAG = AlarmKind("queue-lag", "ApproximateAgeOfOldestMessage", "Maximum", seconds=60, in_a_row=5, threshold=300)
DEAD_LETTERS = AlarmKind("dead-letters", "ApproximateNumberOfMessagesVisible", "Maximum")
READ_THROTTLES = AlarmKind("table-read-throttles", "ReadThrottleEvents", threshold=10)
WRITE_THROTTLES = AlarmKind("table-write-throttles", "WriteThrottleEvents", threshold=10)

MILLISECONDS_A_MINUTE = 60_000

RAISE_LIMIT = "Raise the account's limit of concurrent Lambda executions."
READ_ITS_LOG = "Read its log group for the reason."
CHECK_ALARMS = "See on the dashboard whether it fails or is throttled, then read its log group."
SWEEP_REPEATS = "Correct the cause, then purge the dead-letter queue: sweep starts the work again, so nothing is lost."
NEXT_RUN_REPEATS = "Correct the cause, then purge the dead-letter queue: the next run repeats the work."
CHECK_SCHEDULE = "Check that its EventBridge rule is enabled and that it is not throttled."
SEND_LESS_OFTEN = "If it lasts, send more events in one request, or spread the events over more ledgers."
TABLE_IS_BUSY = (
    "Callers try again by themselves. If it lasts, look for one key that gets most of the traffic, "
    "or raise the account's DynamoDB limit for a table."
)


WAYS_IN: Mapping[str, Sequence[str]] = {
    "ingest": ("http-failures", "batch-failures"),
    "socket": ("socket-integration-errors", "socket-execution-errors", "deadline-queue-lag", "snapshot-queue-lag"),
    "fan-out": ("fan-out-lag", "wake-queue-lag"),
    "crowd": ("crowd-call-lag",),
    "index": ("index-queue-lag",),
    "deliver": ("deliver-queue-lag", "deliver-slow-queue-lag"),
    "archive": ("archive-lag", "archive-queue-lag"),
    "sweep": ("sweep-silence",),
    "settle": ("settle-silence",),
    "remind": ("remind-silence",),
}
"""The alarms of all that calls a function: they go off when it cannot be called. The others answer the HTTP API."""


def of_function(name: str) -> list[Alarm]:
    """What every function is watched for."""
    thing, ways_in = function(name), WAYS_IN.get(name, ("http-failures",))
    return [
        Alarm(thing, ERRORS, f"The function {name} ended with an error.", READ_ITS_LOG),
        Alarm(thing, THROTTLES, f"The function {name} is throttled.", RAISE_LIMIT, shown_by=ways_in),
    ]


def of_table(name: str) -> list[Alarm]:
    """What every table is watched for."""
    thing = table(name)
    return [
        Alarm(thing, READ_THROTTLES, f"DynamoDB throttles reads of the table {name}.", TABLE_IS_BUSY),
        Alarm(thing, WRITE_THROTTLES, f"DynamoDB throttles writes to the table {name}.", TABLE_IS_BUSY),
    ]


def of_writer(contract: str, name: str) -> list[Alarm]:
    """What a function that commits is watched for."""
    thing = writer(contract, name)
    return [
        Alarm(
            thing,
            GIVEN_UP,
            f"The function {name} asks callers to send events again later: too many requests wait for one ledger.",
            f"Callers try again by themselves, and nothing is lost. {SEND_LESS_OFTEN}",
        ),
        Alarm(
            thing,
            WAITS,
            f"For five minutes, busy ledgers have kept requests of the function {name} waiting for over a second.",
            f"Nothing is lost, but answers are late. {SEND_LESS_OFTEN}",
        ),
    ]


APIS = (
    Alarm(
        HTTP_API,
        FAILURES,
        "The HTTP API answers requests with errors (5xx).",
        "Find the routes in its access log, then read the log group of their function. "
        f"If it was not even called, it is throttled. {RAISE_LIMIT}",
    ),
    Alarm(
        BATCH_API,
        REST_FAILURES,
        "The batch door (REST API) answers requests with errors (5xx).",
        "Read the log group of the function ingest; if it is silent, check that API Gateway is permitted to call it.",
    ),
    Alarm(SOCKET_API, INTEGRATION_ERRORS, "The function socket answers the WebSocket API with errors.", READ_ITS_LOG),
    Alarm(
        SOCKET_API,
        EXECUTION_ERRORS,
        "The WebSocket API cannot call the function socket.",
        "Check that API Gateway is permitted to call it, and whether it is throttled.",
    ),
)

FUNCTIONS = (
    *of_writer("sync", "submit"),
    *of_writer("sync", "socket"),
    *of_writer("realtime", "publish"),
    *of_writer("streams", "emit"),
    *of_writer("streams", "markers"),
    *of_writer("delivery", "ingest"),
    *of_writer("catalog", "catalog"),
    Alarm(
        function("fan-out"),
        replace(LAG, threshold=MILLISECONDS_A_MINUTE),
        "The function fan-out is more than one minute behind the log: subscribers and targets get new events late.",
        f"{CHECK_ALARMS} Nothing is lost.",
    ),
    Alarm(
        function("archive"),
        replace(LAG, threshold=10 * MILLISECONDS_A_MINUTE),
        "The function archive is more than ten minutes behind the log: new events are archived late.",
        f"{CHECK_ALARMS} Nothing is lost: retention keeps what is not archived yet.",
    ),
    Alarm(
        ARCHIVE,
        LOST,
        "Events were pruned before the function archive could store them.",
        "Find what pruned them and stop it: it ignored the archive's cursor. "
        "The log line pruned_before_archived counts them.",
    ),
    Alarm(
        HUB,
        UNREADABLE,
        "A stored row cannot be read: what it is about is passed over, and its neighbours are served.",
        "The log line unreadable_row names the row: search the log groups for it. Put the row right or delete it. "
        "Until then a target that it describes gets nothing, and its tenant's history is not pruned.",
    ),
    Alarm(
        DRAIN,
        FAILED,
        "For 15 minutes, the function deliver has failed to read or write its ledgers.",
        "Its log line drain_failed has the reason. Nothing is lost: it tries again every minute.",
    ),
    Alarm(
        function("sweep"),
        replace(SILENCE, seconds=900),
        "The function sweep has not run for 15 minutes.",
        f"{CHECK_SCHEDULE} Until it runs, a lost wake-up message is not sent again.",
    ),
    Alarm(
        function("settle"),
        SILENCE,
        "The function settle has not run for five minutes.",
        f"{CHECK_SCHEDULE} Until it runs, a marker change that was interrupted stays without its event.",
    ),
    Alarm(
        function("remind"),
        SILENCE,
        "The function remind has not run for five minutes.",
        f"{CHECK_SCHEDULE} Until it runs, deliveries that failed are not tried again.",
    ),
)

QUEUES = (
    Alarm(
        queue("index"),
        QUEUE_LAG,
        "A message for the function index has waited for five minutes: sync is slower, but its answers are right.",
        CHECK_ALARMS,
    ),
    Alarm(
        queue("deadline"),
        QUEUE_LAG,
        "A message about an open socket has waited for five minutes: sockets that stay silent are not closed.",
        f"{CHECK_ALARMS} Clients that say connect are not concerned.",
    ),
    Alarm(
        queue("snapshot"),
        QUEUE_LAG,
        "The rest of a snapshot has waited for five minutes: some new subscribers get their events late.",
        f"{CHECK_ALARMS} Nothing is lost: a subscriber whose snapshot does not go on is disconnected and comes again.",
    ),
    Alarm(
        queue("wake"),
        QUEUE_LAG,
        "A message for the function fan-out has waited for five minutes: some subscribers get new events late.",
        f"{CHECK_ALARMS} Nothing is lost.",
    ),
    Alarm(
        queue("deliver"),
        replace(QUEUE_LAG, threshold=900),
        "A message for the function deliver has waited for 15 minutes.",
        "Find the targets that wait: has_due in GET /v1/delivery/status. "
        "If they answer quickly, raise the MaximumConcurrency of the queue in template.yaml.",
    ),
    Alarm(
        queue("deliver-slow"),
        replace(QUEUE_LAG, threshold=900),
        "A message for a slow target has waited for 15 minutes.",
        "Find the targets that fail or answer late: failures_in_a_row and drain in GET /v1/delivery/status. "
        "Pause them, or raise the MaximumConcurrency of the queue in template.yaml.",
    ),
    Alarm(
        queue("archive"),
        QUEUE_LAG,
        "A message for the function archive has waited for five minutes: a ledger is not archived yet.",
        f"{CHECK_ALARMS} Nothing is lost.",
    ),
    Alarm(
        dead_letters("fan-out"),
        DEAD_LETTERS,
        "The function fan-out gave up on some records of the log's stream: subscribers get some new events late.",
        f"{READ_ITS_LOG} {SWEEP_REPEATS}",
    ),
    Alarm(
        function("crowd"),
        replace(CALL_LAG, threshold=MILLISECONDS_A_MINUTE),
        "The function crowd is called late: some of a large audience get new events late.",
        f"{CHECK_ALARMS} Nothing is lost.",
    ),
    Alarm(
        dead_letters("crowd"),
        DEAD_LETTERS,
        "The function crowd gave up on a part of a large audience: its connections get new events late.",
        f"{READ_ITS_LOG} {SWEEP_REPEATS}",
    ),
    Alarm(
        dead_letters("archive"),
        DEAD_LETTERS,
        "The function archive gave up on some records of the log's stream or on a message: a ledger is archived late.",
        f"{READ_ITS_LOG} {SWEEP_REPEATS}",
    ),
    Alarm(
        dead_letters("index"),
        DEAD_LETTERS,
        "The function index gave up on a message: sync of one ledger is slower, but its answers are right.",
        f"{READ_ITS_LOG} Correct the cause, then start a redrive of the dead-letter queue.",
    ),
    Alarm(
        dead_letters("deadline"),
        DEAD_LETTERS,
        "The function socket could not close a socket that stays silent.",
        f"{READ_ITS_LOG} Correct the cause, then purge the dead-letter queue: the gateway ends idle sockets by itself.",
        shown_by=("socket-errors",),
    ),
    Alarm(
        dead_letters("snapshot"),
        DEAD_LETTERS,
        "The function socket could not go on with a snapshot.",
        f"{READ_ITS_LOG} Correct the cause, then purge the dead-letter queue: its subscriber connects again.",
    ),
    Alarm(
        dead_letters("wake"),
        DEAD_LETTERS,
        "The function fan-out gave up on a message from sweep: some subscribers get new events late.",
        f"{READ_ITS_LOG} {SWEEP_REPEATS}",
    ),
    Alarm(
        dead_letters("deliver"),
        DEAD_LETTERS,
        "The function deliver failed ten times on the same message.",
        f"{READ_ITS_LOG} {SWEEP_REPEATS}",
    ),
    Alarm(
        dead_letters("remind"),
        DEAD_LETTERS,
        "A run of the function remind failed, and so did its retry.",
        f"{READ_ITS_LOG} {NEXT_RUN_REPEATS}",
    ),
    Alarm(
        dead_letters("sweep"),
        DEAD_LETTERS,
        "A run of the function sweep failed, and so did its retry.",
        f"{READ_ITS_LOG} {NEXT_RUN_REPEATS}",
    ),
    Alarm(
        dead_letters("jobs"),
        DEAD_LETTERS,
        "A run of a Glue job (compact or retain) failed, or takes over an hour.",
        "The message in the queue names the job and the run; its log groups end in /output and /error. Correct the "
        "cause, start the job again, then purge the queue. Nothing is lost: a run begins where the last one ended.",
    ),
    Alarm(
        dead_letters("settle"),
        DEAD_LETTERS,
        "A run of the function settle failed, and so did its retry.",
        f"{READ_ITS_LOG} {NEXT_RUN_REPEATS}",
    ),
)


def watched_by(kind: AlarmKind) -> list[Thing]:
    return [alarm.thing for alarm in (*FUNCTIONS, *QUEUES) if alarm.kind.metric == kind.metric]
