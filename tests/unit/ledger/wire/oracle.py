"""What botocore sends for a call, and what it makes of an answer: the measure of the lean wire."""

from __future__ import annotations

from functools import cache
from typing import Any

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError

from millrace.ledger.adapters.wire.clients import service_at
from millrace.ledger.adapters.wire.connections import AwsEndpoint, HttpAnswer, KeptConnections, WireLimits
from millrace.ledger.adapters.wire.credentials import Credentials
from millrace.ledger.adapters.wire.dynamodb import LeanDynamoDB
from millrace.ledger.adapters.wire.failures import AwsRefused
from millrace.ledger.adapters.wire.retrying import Retries
from millrace.ledger.adapters.wire.service import Service
from millrace.ledger.adapters.wire.services import LeanQueues, LeanSecrets, LeanSockets

NOW = 1_790_000_000.5
KEYS = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session/token+==")
LIMITS = WireLimits(1, 1, 4)
LEAN: dict[str, type[LeanDynamoDB | LeanQueues | LeanSecrets | LeanSockets]] = {
    "dynamodb": LeanDynamoDB,
    "sqs": LeanQueues,
    "secretsmanager": LeanSecrets,
    "apigatewaymanagementapi": LeanSockets,
}
URLS = {"apigatewaymanagementapi": "https://abc123.execute-api.eu-central-1.amazonaws.com/live"}


class Scripted(KeptConnections):
    """Keeps what is sent, and answers as told; the last answer is repeated."""

    def __init__(self, url: str, *answers: HttpAnswer | Exception) -> None:
        super().__init__(AwsEndpoint.of(url), LIMITS)
        self.sent: list[bytes] = []
        self.answers = list(answers) or [HttpAnswer(200, {}, b"{}", reusable=True)]

    def exchange(self, request: bytes) -> HttpAnswer:
        self.sent.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def url_of(service: str) -> str:
    return URLS.get(service, f"https://{service}.eu-central-1.amazonaws.com")


def lean(service: str, scripted: KeptConnections, retries: Retries | None = None) -> Any:
    signed_as = "execute-api" if service == "apigatewaymanagementapi" else service
    made = service_at(url_of(service), signed_as, "eu-central-1", LIMITS, 4, lambda: KEYS)
    return LEAN[service](Service(scripted, made.signer, retries or made.retries, lambda: KEYS, lambda: NOW))


@cache
def boto(service: Any) -> Any:
    return boto3.client(
        service,
        region_name="eu-central-1",
        endpoint_url=URLS.get(service),
        aws_access_key_id=KEYS.access_key,
        aws_secret_access_key=KEYS.secret_key,
        aws_session_token=KEYS.token,
        config=Config(retries={"mode": "standard", "max_attempts": 4}),
    )


def sent_by_boto(service: str, call: str, parameters: dict[str, Any]) -> AWSPreparedRequest:
    """The request as botocore would send it."""
    sent: list[AWSPreparedRequest] = []

    def keep(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        sent.append(request)
        return answer_for_boto(request.url, HttpAnswer(200, {}, b"{}", reusable=True))

    _with_answers(service, call, parameters, keep)
    return sent[0]


def answered_to_boto(service: str, call: str, answer: HttpAnswer) -> tuple[dict[str, Any], bool]:
    """What botocore makes of an answer, and whether that is an error."""
    try:
        return _with_answers(
            service, call, ANY[service], lambda request, **_: answer_for_boto(request.url, answer)
        ), False
    except ClientError as error:
        return dict(error.response), True


def answered_to_lean(service: str, call: str, answer: HttpAnswer) -> tuple[dict[str, Any], bool]:
    retries = Retries(1)
    try:
        return getattr(lean(service, Scripted(url_of(service), answer), retries), call)(**ANY[service]), False
    except AwsRefused as error:
        return error.response, True


ANY: dict[str, dict[str, Any]] = {
    "dynamodb": {"TableName": "t", "Item": {"k": {"S": "x"}}},
    "sqs": {"QueueUrl": "https://q", "MessageBody": "x"},
    "secretsmanager": {"SecretId": "x"},
    "apigatewaymanagementapi": {"ConnectionId": "x", "Data": b"x"},
}


def _with_answers(service: str, call: str, parameters: dict[str, Any], answer: Any) -> dict[str, Any]:
    events = boto(service).meta.events
    events.register_first("before-send.*", answer, unique_id="oracle")
    events.register_first("needs-retry.*", _never, unique_id="never")
    try:
        made: dict[str, Any] = getattr(boto(service), call)(**parameters)
        return made
    finally:
        events.unregister("before-send.*", unique_id="oracle")
        events.unregister("needs-retry.*", unique_id="never")


def _never(**_: Any) -> bool:
    return False


class _Raw:
    def __init__(self, body: bytes) -> None:
        self.body = body

    def stream(self) -> list[bytes]:
        return [self.body]


def answer_for_boto(url: str, answer: HttpAnswer) -> AWSResponse:
    headers: Any = dict(answer.headers)
    return AWSResponse(url, answer.status, headers, _Raw(answer.body))
