"""Wake-ups on an SQS queue. Any number may be there for one target: a lease keeps its drains apart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from millrace.delivery.domain.drains import HIDDEN_MS
from millrace.delivery.ports.targets import Wake
from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.domain.errors import Unavailable

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

ENTRIES = 10
LEDGERS = 20
"""In one message, so that ten messages of the longest names fit in one call."""


@dataclass(frozen=True, slots=True)
class SqsWakes:
    client: SQSClient
    queue_url: str
    slow_queue_url: str = ""
    """Where the function deliver sends what is for slow targets; nobody else does."""

    def send(self, wakes: Sequence[Wake]) -> None:
        for slow in (False, True):
            messages = [message for wake in wakes if wake.slow is slow for message in _parts(wake)]
            for start in range(0, len(messages), ENTRIES):
                self._send(self._queue(slow=slow), messages[start : start + ENTRIES])

    def _send(self, queue_url: str, messages: Sequence[Wake]) -> None:
        entries: Any = [{"Id": str(number), "MessageBody": body_of(wake)} for number, wake in enumerate(messages)]
        with translated():
            answer = self.client.send_message_batch(QueueUrl=queue_url, Entries=entries)
        if answer.get("Failed"):
            raise Unavailable("The queue did not take every wake-up.", failed=len(answer["Failed"]))

    def keep(self, wake: Wake, receipt: str) -> None:
        """Keep a message that is being worked on out of other hands for a few seconds."""
        with translated():
            self.client.change_message_visibility(
                QueueUrl=self._queue(slow=wake.slow), ReceiptHandle=receipt, VisibilityTimeout=HIDDEN_MS // 1000
            )

    def _queue(self, *, slow: bool) -> str:
        return self.slow_queue_url if slow else self.queue_url


def body_of(wake: Wake) -> str:
    content: dict[str, Any] = {
        "tenant": wake.tenant,
        "target_id": wake.target_id,
        "ledgers": list(wake.ledgers),
        "scan": wake.scan,
    }
    if wake.most_events:
        content["most_events"] = wake.most_events
    if wake.slow:
        content["slow"] = True
    return json.dumps(content, separators=(",", ":"))


def wake_of(body: str) -> Wake:
    content = json.loads(body)
    return Wake(
        content["tenant"],
        content["target_id"],
        tuple(content["ledgers"]),
        content["scan"],
        content.get("most_events", 0),
        content.get("slow", False),
    )


def _parts(wake: Wake) -> Iterator[Wake]:
    if len(wake.ledgers) <= LEDGERS:
        yield wake
        return
    for start in range(0, len(wake.ledgers), LEDGERS):
        yield replace(wake, ledgers=wake.ledgers[start : start + LEDGERS])
