"""A service of AWS at its endpoint: signs, sends, repeats, and reads refusals."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from millrace.ledger.adapters.wire.connections import HttpAnswer, KeptConnections, request_bytes
from millrace.ledger.adapters.wire.credentials import Credentials, function_credentials
from millrace.ledger.adapters.wire.failures import AwsRefused, AwsUnanswered
from millrace.ledger.adapters.wire.retrying import Retries
from millrace.ledger.adapters.wire.signing import Signer
from millrace.version import VERSION

AGENT = f"millrace/{VERSION}"


@dataclass(frozen=True, slots=True)
class Service:
    connections: KeptConnections
    signer: Signer
    retries: Retries
    credentials: Callable[[], Credentials] = function_credentials
    clock: Callable[[], float] = time.time

    def call(
        self,
        operation: str,
        headers: Mapping[str, str],
        body: bytes,
        method: str = "POST",
        path: str = "/",
        decode: Callable[[str], Any] = json.loads,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What AWS answered, and the answer's metadata. Raises `AwsRefused` or `AwsUnanswered`."""
        attempt, cost = 1, 0
        while True:
            try:
                answer = self.connections.exchange(self._request(method, path, headers, body))
                _check_whole(answer, operation)
                if answer.status < 300:
                    self.retries.succeeded(cost)
                    return _decoded(answer, operation, decode), _metadata(answer, attempt)
                failure: AwsRefused | AwsUnanswered = _refusal(answer, operation, decode, attempt)
            except AwsUnanswered as error:
                failure = error
            cost = self.retries.again(failure, attempt)
            if not cost:
                raise failure
            attempt += 1

    def _request(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
        """Signed anew each time: a repeated request must not be too old."""
        target = self.connections.target
        path = (target.path.rstrip("/") + path) or "/"
        complete = {"host": target.authority, **headers}
        proof = self.signer.sign(self.credentials(), method, path, complete, body, self.clock())
        return request_bytes(method, path, {**complete, "user-agent": AGENT, **_trace(), **proof}, body)


def _decoded(answer: HttpAnswer, operation: str, decode: Callable[[str], Any]) -> dict[str, Any]:
    try:
        decoded: dict[str, Any] = decode(answer.body.decode()) if answer.body else {}
    except ValueError as error:
        raise AwsUnanswered("ResponseParserError", operation) from error
    return decoded


def _trace() -> dict[str, str]:
    """By this Lambda notices functions that call themselves for ever."""
    trace = os.environ.get("_X_AMZN_TRACE_ID")
    if not trace or "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:
        return {}
    return {"x-amzn-trace-id": quote(trace, safe="-=;:+&[]{}\"',")}


def _check_whole(answer: HttpAnswer, operation: str) -> None:
    """DynamoDB says what its answer's checksum is."""
    checksum = answer.headers.get("x-amz-crc32")
    if checksum is not None and zlib.crc32(answer.body) != int(checksum):
        raise AwsUnanswered("ChecksumError", operation)


def _metadata(answer: HttpAnswer, attempt: int) -> dict[str, Any]:
    return {
        "RequestId": answer.headers.get("x-amzn-requestid", ""),
        "HTTPStatusCode": answer.status,
        "HTTPHeaders": answer.headers,
        "RetryAttempts": attempt - 1,
    }


def _refusal(answer: HttpAnswer, operation: str, decode: Callable[[str], Any], attempt: int) -> AwsRefused:
    body = _body(answer, decode)
    code = str(answer.headers.get("x-amzn-errortype") or body.get("__type") or body.get("code") or answer.status)
    code = code.partition(":")[0].rpartition("#")[2]
    told = {"Message": body.get("message", body.get("Message", "")), "Code": code}
    by_query = answer.headers.get("x-amzn-query-error", "").split(";")
    if len(by_query) == 2 and by_query[0]:
        told |= {"Code": by_query[0], "QueryErrorCode": code, "Type": by_query[1]}
    response = {**body, "Error": told, "ResponseMetadata": _metadata(answer, attempt)}
    return AwsRefused(response, operation)


def _body(answer: HttpAnswer, decode: Callable[[str], Any]) -> dict[str, Any]:
    """What is no JSON object, as a gateway may answer, is the message."""
    text = answer.body.decode("utf-8", "replace")
    try:
        body = decode(text) if text else {}
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {"message": text}
