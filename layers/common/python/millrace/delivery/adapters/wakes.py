"""Wake-ups on an SQS FIFO queue: a target is a message group, so one of its drains runs at a time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from millrace.delivery.ports.targets import Wake
from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import join_key

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

ENTRIES = 10
LEDGERS = 20
"""In one message, so that ten messages of the longest names fit in one call."""


@dataclass(frozen=True, slots=True)
class SqsWakes:
    client: SQSClient
    queue_url: str
    new_id: Callable[[], str]

    def send(self, wakes: Sequence[Wake]) -> None:
        """No two have the same deduplication id: one that comes while a drain is ending may be the one that matters."""
        messages = [message for wake in wakes for message in _parts(wake)]
        for start in range(0, len(messages), ENTRIES):
            entries: Any = [
                {
                    "Id": str(number),
                    "MessageBody": body_of(wake),
                    "MessageGroupId": hashlib.sha256(join_key(wake.tenant, wake.target_id).encode()).hexdigest(),
                    "MessageDeduplicationId": self.new_id(),
                }
                for number, wake in enumerate(messages[start : start + ENTRIES])
            ]
            with translated():
                answer = self.client.send_message_batch(QueueUrl=self.queue_url, Entries=entries)
            if answer.get("Failed"):
                raise Unavailable("The queue did not take every wake-up.", failed=len(answer["Failed"]))


def body_of(wake: Wake) -> str:
    content = {"tenant": wake.tenant, "target_id": wake.target_id, "ledgers": list(wake.ledgers), "scan": wake.scan}
    return json.dumps(content, separators=(",", ":"))


def wake_of(body: str) -> Wake:
    content = json.loads(body)
    return Wake(content["tenant"], content["target_id"], tuple(content["ledgers"]), content["scan"])


def _parts(wake: Wake) -> Iterator[Wake]:
    if len(wake.ledgers) <= LEDGERS:
        yield wake
        return
    for start in range(0, len(wake.ledgers), LEDGERS):
        yield replace(wake, ledgers=wake.ledgers[start : start + LEDGERS])
