"""What AWS answers means the same on the lean wire as to botocore: values, errors, and which are tried again."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
from botocore import exceptions
from botocore.retries.standard import RetryContext, StandardRetryConditions

from millrace.ledger.adapters.aws_errors import applied, refusals, translated
from millrace.ledger.adapters.wire.connections import HttpAnswer
from millrace.ledger.adapters.wire.failures import AwsRefused, AwsUnanswered
from millrace.ledger.adapters.wire.retrying import (
    COST,
    QUOTA,
    THROTTLED,
    TIMEOUT_COST,
    TRANSIENT,
    Retries,
    is_retryable,
)
from millrace.ledger.domain.errors import Throttled, Unavailable
from tests.unit.ledger.wire.oracle import (
    ANY,
    Scripted,
    answered_to_boto,
    answered_to_lean,
    boto,
    lean,
    url_of,
)

GATEWAY = "<html><body><b>Http/1.1 Service Unavailable</b></body></html>"


def answer(status: int, body: Any, **headers: str) -> HttpAnswer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpAnswer(status, {"x-amzn-requestid": "r1", **named}, raw, reusable=True)


def ours(told: dict[str, Any]) -> dict[str, Any]:
    """Without what botocore leaves out, and without what differs by design."""
    left = {name: value for name, value in told.items() if name not in ("__type", "message", "Message", "code")}
    metadata = told["ResponseMetadata"]
    left["ResponseMetadata"] = {name: metadata[name] for name in ("HTTPStatusCode", "RequestId") if metadata.get(name)}
    return left


ITEM = {"k": {"S": "é"}, "B": {"B": "AP8="}, "m": {"M": {"BS": {"BS": ["AA==", ""]}, "l": {"L": [{"B": ""}]}}}}
ANSWERS: list[tuple[str, str, HttpAnswer]] = [
    ("dynamodb", "put_item", answer(200, {"Attributes": ITEM, "ConsumedCapacity": {"CapacityUnits": 1.5}})),
    ("dynamodb", "put_item", answer(200, {})),
    (
        "dynamodb",
        "put_item",
        answer(
            400,
            {
                "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
                "message": "no",
                "Item": ITEM,
            },
        ),
    ),
    (
        "dynamodb",
        "put_item",
        answer(400, {"__type": "com.amazon.coral.validate#ValidationException", "Message": "too long: x"}),
    ),
    ("dynamodb", "put_item", answer(400, {"__type": "ProvisionedThroughputExceededException"})),
    ("dynamodb", "put_item", answer(500, {"__type": "InternalServerError", "message": "oh"})),
    ("dynamodb", "put_item", answer(400, b"not json")),
    ("sqs", "send_message", answer(200, {"MessageId": "m", "MD5OfMessageBody": "x"})),
    (
        "sqs",
        "send_message",
        answer(
            400,
            {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no"},
            x_amzn_query_error="AWS.SimpleQueueService.NonExistentQueue;Sender",
        ),
    ),
    ("secretsmanager", "get_secret_value", answer(200, {"SecretString": "s", "Name": "n"})),
    ("secretsmanager", "get_secret_value", answer(400, {"__type": "ResourceNotFoundException", "Message": "no"})),
    ("apigatewaymanagementapi", "post_to_connection", answer(200, b"")),
    (
        "apigatewaymanagementapi",
        "post_to_connection",
        answer(410, {"message": "gone"}, x_amzn_errortype="GoneException"),
    ),
    ("apigatewaymanagementapi", "post_to_connection", answer(410, b"", x_amzn_errortype="GoneException:http://x")),
    (
        "apigatewaymanagementapi",
        "post_to_connection",
        answer(403, {"message": "Forbidden"}, x_amzn_errortype="ForbiddenException"),
    ),
    (
        "apigatewaymanagementapi",
        "post_to_connection",
        answer(429, {"message": "slow"}, x_amzn_errortype="LimitExceededException"),
    ),
    ("apigatewaymanagementapi", "post_to_connection", answer(404, b"")),
]


@pytest.mark.parametrize(("service", "call", "told"), ANSWERS, ids=[f"{one[1]}-{one[2].status}" for one in ANSWERS])
def test_an_answer_is_read_as_botocore_reads_it(service: str, call: str, told: HttpAnswer) -> None:
    theirs, their_error = answered_to_boto(service, call, told)
    our, our_error = answered_to_lean(service, call, told)
    assert our_error == their_error
    assert ours(our) == ours(theirs)


@pytest.mark.parametrize("told", [answer(503, GATEWAY.encode()), answer(502, b"")], ids=["html", "nothing"])
@pytest.mark.parametrize(("service", "call"), [("dynamodb", "put_item"), ("sqs", "send_message")])
def test_an_answer_of_a_gateway_before_aws_has_its_status_for_a_code(service: str, call: str, told: HttpAnswer) -> None:
    """Only our message differs: what was answered, not what the status is called."""
    theirs, our = answered_to_boto(service, call, told), answered_to_lean(service, call, told)
    assert our[1]
    assert theirs[1]
    assert our[0]["Error"]["Code"] == theirs[0]["Error"]["Code"] == str(told.status)


def test_the_reasons_of_a_cancelled_transaction_are_read_as_botocore_reads_them() -> None:
    reasons = [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Message": "no", "Item": ITEM}]
    told = answer(400, {"__type": "TransactionCanceledException", "message": "x", "CancellationReasons": reasons})
    with pytest.raises(AwsRefused) as failure:
        lean("dynamodb", Scripted(url_of("dynamodb"), told)).transact_write_items(TransactItems=[])
    read = failure.value.response["CancellationReasons"]
    assert (read[0]["Code"], read[1]["Item"]["B"]) == ("None", {"B": b"\x00\xff"})


CODES = sorted(
    TRANSIENT
    | THROTTLED
    | {"ReplicatedWriteConflictException", "ConditionalCheckFailedException", "Nobody", "GoneException"}
)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("status", [400, 403, 410, 429, 500, 501, 502, 503, 504])
def test_the_same_errors_are_tried_again(code: str, status: int) -> None:
    parsed = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    operation = boto("dynamodb").meta.service_model.operation_model("PutItem")
    http = type("Http", (), {"status_code": status, "headers": {}, "content": b""})()
    context = RetryContext(1, operation, parsed_response=parsed, http_response=http)
    assert is_retryable(AwsRefused(parsed, "PutItem")) == StandardRetryConditions(5).is_retryable(context)


@pytest.mark.parametrize(
    "kind", ["ConnectTimeoutError", "ReadTimeoutError", "EndpointConnectionError", "ConnectionClosedError", "SSLError"]
)
def test_so_are_the_same_silences(kind: str) -> None:
    error = getattr(exceptions, kind)(endpoint_url="x", error="y")
    operation = boto("dynamodb").meta.service_model.operation_model("PutItem")
    assert StandardRetryConditions(5).is_retryable(RetryContext(1, operation, caught_exception=error))
    assert is_retryable(AwsUnanswered(kind, "x"))


def retries(attempts: int, slept: list[float], chance: float = 1.0) -> Retries:
    return Retries(attempts, slept.append, lambda: chance)


def test_a_call_is_made_five_times_in_all_with_pauses_that_double() -> None:
    slept: list[float] = []
    scripted = Scripted(url_of("dynamodb"), answer(500, {"__type": "InternalServerError"}))
    with pytest.raises(AwsRefused) as failure:
        lean("dynamodb", scripted, retries(5, slept)).get_item(TableName="t", Key={})
    assert (len(scripted.sent), slept) == (5, [1, 2, 4, 8])
    assert failure.value.response["ResponseMetadata"]["RetryAttempts"] == 4


def test_the_clients_of_functions_try_as_often_as_boto3_with_the_same_settings() -> None:
    made = lean("dynamodb", Scripted(url_of("dynamodb"))).service.retries.attempts
    assert made == boto("dynamodb").meta.config.retries["total_max_attempts"] == 5


def test_an_answer_that_was_lost_is_asked_for_again_with_the_same_request() -> None:
    """A page whose answer was lost is handed back by the second put: its nonce says that it is ours."""
    lost = AwsUnanswered("ReadTimeoutError", "x")
    scripted = Scripted(url_of("dynamodb"), lost, answer(200, {"Attributes": {}}))
    told = lean("dynamodb", scripted, retries(5, [])).put_item(**ANY["dynamodb"])
    first, second = (sent.partition(b"\r\n\r\n")[2] for sent in scripted.sent)
    assert first == second
    assert told["ResponseMetadata"]["RetryAttempts"] == 1


def test_a_refusal_that_stays_is_not_tried_again() -> None:
    scripted = Scripted(url_of("dynamodb"), answer(400, {"__type": "ConditionalCheckFailedException"}))
    with pytest.raises(AwsRefused):
        lean("dynamodb", scripted).put_item(**ANY["dynamodb"])
    assert len(scripted.sent) == 1


def test_an_answer_with_a_wrong_checksum_is_asked_for_again() -> None:
    good = json.dumps({"Attributes": {"k": {"S": "x"}}}).encode()
    broken = answer(200, good[:-3], x_amz_crc32=str(zlib.crc32(good)))
    scripted = Scripted(url_of("dynamodb"), broken, answer(200, good, x_amz_crc32=str(zlib.crc32(good))))
    told = lean("dynamodb", scripted, retries(5, [])).put_item(**ANY["dynamodb"])
    assert (told["Attributes"], len(scripted.sent)) == ({"k": {"S": "x"}}, 2)


def test_when_too_much_fails_calls_are_no_longer_repeated_until_some_succeed() -> None:
    quota, failure = retries(5, [], 0.0), AwsUnanswered("ReadTimeoutError", "x")
    assert sum(bool(quota.again(failure, 1)) for _ in range(QUOTA)) == QUOTA // TIMEOUT_COST
    assert quota.again(AwsUnanswered("ConnectionClosedError", "x"), 1) == 0
    for _ in range(COST):
        quota.succeeded(0)
    assert quota.again(AwsUnanswered("ConnectionClosedError", "x"), 1) == COST
    quota.succeeded(COST)
    assert quota.again(AwsUnanswered("ConnectionClosedError", "x"), 1) == COST


@pytest.mark.parametrize(
    ("told", "error", "cause"),
    [
        (answer(400, {"__type": "ThrottlingException"}), Throttled, "ThrottlingException"),
        (answer(400, {"__type": "AccessDeniedException"}), Unavailable, "AccessDeniedException"),
        (AwsUnanswered("ReadTimeoutError", "x"), Unavailable, "ReadTimeoutError"),
        (answer(200, b"{"), Unavailable, "ResponseParserError"),
    ],
)
def test_failures_of_the_lean_wire_become_ours(told: Any, error: type[Exception], cause: str) -> None:
    client = lean("dynamodb", Scripted(url_of("dynamodb"), told), retries(2, []))
    with pytest.raises(error) as failure, translated():
        client.put_item(**ANY["dynamodb"])
    assert getattr(failure.value, "details", {}) == {"cause": cause}


def test_a_condition_that_does_not_hold_is_an_answer_on_either_wire() -> None:
    told = answer(400, {"__type": "ConditionalCheckFailedException"})
    assert not applied(lambda: answered_or_raised(told))
    assert set(refusals()) == {AwsRefused, exceptions.ClientError}


def answered_or_raised(told: HttpAnswer) -> Any:
    return lean("dynamodb", Scripted(url_of("dynamodb"), told)).put_item(**ANY["dynamodb"])
