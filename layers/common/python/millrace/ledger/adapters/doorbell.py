"""The doorbell on SQS: a message is a ledger's name, nothing more, in characters that every queue takes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

ENTRIES = 10


@dataclass(frozen=True, slots=True)
class SqsDoorbell:
    client: SQSClient
    queue_url: str
    delay_s: int = 0
    """A ring is heard so much later."""

    def ring(self, ledgers: Iterable[Ledger]) -> None:
        names = sorted({ledger.name for ledger in ledgers})
        for start in range(0, len(names), ENTRIES):
            group = names[start : start + ENTRIES]
            later = {"DelaySeconds": self.delay_s} if self.delay_s else {}
            entries: Any = [
                {"Id": str(number), "MessageBody": json.dumps(name), **later} for number, name in enumerate(group)
            ]
            with translated():
                answer = self.client.send_message_batch(QueueUrl=self.queue_url, Entries=entries)
            if answer.get("Failed"):
                raise Unavailable("The queue did not take every ring.", failed=len(answer["Failed"]))


def rung_for(body: str) -> Ledger:
    """The ledger that a message names. A ring that waits from before names were written as JSON is read as it is."""
    return Ledger.to_read(json.loads(body) if body.startswith('"') else body)
