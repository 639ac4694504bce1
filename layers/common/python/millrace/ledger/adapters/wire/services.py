"""SQS, Secrets Manager and the connections of a WebSocket API over the lean wire, called as boto3's clients are."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from millrace.ledger.adapters.wire.service import Service

encode = json.JSONEncoder(separators=(",", ":")).encode


def _operation(target: str, version: str, **more: str) -> Callable[..., dict[str, Any]]:
    headers = {"content-type": f"application/x-amz-json-{version}", "x-amz-target": target, **more}
    name = target.rpartition(".")[2]

    def call(self: LeanQueues | LeanSecrets, **request: Any) -> dict[str, Any]:
        answer, metadata = self.service.call(name, headers, encode(request).encode())
        answer["ResponseMetadata"] = metadata
        return answer

    return call


QUERY_MODE = {"x-amzn-query-mode": "true"}
"""Asks SQS to name errors as it did before it spoke JSON."""


class LeanQueues:
    def __init__(self, service: Service) -> None:
        self.service = service

    change_message_visibility = _operation("AmazonSQS.ChangeMessageVisibility", "1.0", **QUERY_MODE)
    send_message = _operation("AmazonSQS.SendMessage", "1.0", **QUERY_MODE)
    send_message_batch = _operation("AmazonSQS.SendMessageBatch", "1.0", **QUERY_MODE)


class LeanSecrets:
    def __init__(self, service: Service) -> None:
        self.service = service

    get_secret_value = _operation("secretsmanager.GetSecretValue", "1.1")


class LeanSockets:
    def __init__(self, service: Service) -> None:
        self.service = service

    def post_to_connection(self, *, ConnectionId: str, Data: bytes) -> dict[str, Any]:  # noqa: N803
        _, metadata = self.service.call("PostToConnection", {}, Data, path=_path(ConnectionId))
        return {"ResponseMetadata": metadata}

    def delete_connection(self, *, ConnectionId: str) -> dict[str, Any]:  # noqa: N803
        _, metadata = self.service.call("DeleteConnection", {}, b"", "DELETE", _path(ConnectionId))
        return {"ResponseMetadata": metadata}


def _path(connection: str) -> str:
    return f"/@connections/{quote(connection, safe='-._~')}"
