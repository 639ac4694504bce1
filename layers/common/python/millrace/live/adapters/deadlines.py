"""Deadlines on SQS: a message that names a connection, and arrives when its time to say `connect` is over."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millrace.ledger.adapters.aws_errors import translated
from millrace.live.domain.messages import CONNECT_SECONDS

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True, slots=True)
class SqsDeadlines:
    client: SQSClient
    queue_url: str

    def set(self, connection: str) -> None:
        body = json.dumps({"connection": connection})
        with translated():
            self.client.send_message(QueueUrl=self.queue_url, MessageBody=body, DelaySeconds=CONNECT_SECONDS)


def connection_of(body: str) -> str:
    return str(json.loads(body)["connection"])
