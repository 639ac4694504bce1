"""DynamoDB over the lean wire: the operations that the adapters use, called and answered as boto3's client does."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from typing import Any

from millrace.ledger.adapters.wire.service import Service

TARGET = "DynamoDB_20120810"


def _base64(value: object) -> str:
    """Of all that a request may hold, only binary values are unknown to JSON."""
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} is no value that DynamoDB takes")


def _binary(parsed: dict[str, Any]) -> dict[str, Any]:
    """Only a typed value has text under the name `B`; an attribute of that name has a typed value there."""
    if len(parsed) == 1:
        text = parsed.get("B")
        if isinstance(text, str):
            parsed["B"] = base64.b64decode(text)
        texts = parsed.get("BS")
        if isinstance(texts, list):
            parsed["BS"] = [base64.b64decode(one) for one in texts]
    return parsed


encode = json.JSONEncoder(separators=(",", ":"), default=_base64).encode
decode = json.JSONDecoder(object_hook=_binary).decode


def _operation(name: str) -> Callable[..., dict[str, Any]]:
    headers = {"content-type": "application/x-amz-json-1.0", "x-amz-target": f"{TARGET}.{name}"}

    def call(self: LeanDynamoDB, **request: Any) -> dict[str, Any]:
        answer, metadata = self.service.call(name, headers, encode(request).encode(), decode=decode)
        answer["ResponseMetadata"] = metadata
        return answer

    return call


class LeanDynamoDB:
    def __init__(self, service: Service) -> None:
        self.service = service

    batch_execute_statement = _operation("BatchExecuteStatement")
    batch_get_item = _operation("BatchGetItem")
    batch_write_item = _operation("BatchWriteItem")
    delete_item = _operation("DeleteItem")
    execute_statement = _operation("ExecuteStatement")
    get_item = _operation("GetItem")
    put_item = _operation("PutItem")
    query = _operation("Query")
    update_item = _operation("UpdateItem")
    _transact_write_items = _operation("TransactWriteItems")

    def transact_write_items(self, **request: Any) -> dict[str, Any]:
        """The token makes repeats of one call one transaction."""
        return self._transact_write_items(**{"ClientRequestToken": os.urandom(16).hex(), **request})
