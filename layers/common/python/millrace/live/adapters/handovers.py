"""Handovers on SQS: a message says how far a snapshot was sent and brings its next sender."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from millrace.ledger.adapters.aws_errors import translated
from millrace.live.ports import Handover

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True, slots=True)
class SqsHandovers:
    client: SQSClient
    queue_url: str

    def send(self, handover: Handover) -> None:
        """ASCII, whatever a name in it is made of."""
        with translated():
            self.client.send_message(QueueUrl=self.queue_url, MessageBody=json.dumps({"snapshot": asdict(handover)}))


def handover_of(body: str) -> Handover | None:
    """None if the message is no handover."""
    stored = json.loads(body).get("snapshot")
    if stored is None:
        return None
    return Handover(
        connection=str(stored["connection"]),
        id=str(stored["id"]),
        ledger=str(stored["ledger"]),
        sent=int(stored["sent"]),
        watermark=int(stored["watermark"]),
        step=int(stored["step"]),
    )
