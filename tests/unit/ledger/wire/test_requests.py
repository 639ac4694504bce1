"""What the lean wire sends is what botocore sends: path, signature, and the same request in the body."""

from __future__ import annotations

import hmac
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from hypothesis import given
from hypothesis import strategies as st

from millrace.ledger.adapters.wire.credentials import Credentials
from millrace.ledger.adapters.wire.signing import Signer
from tests.unit.ledger.wire.oracle import KEYS, NOW, Scripted, lean, sent_by_boto, url_of

VALUES: dict[str, Any] = {
    "s": {"S": 'Ünï✓ \u2028 " \\ \x00 \ud800'},
    "n": {"N": "-12345678901234567890.5"},
    "b": {"B": bytes(range(256))},
    "empty": {"B": b""},
    "ss": {"SS": ["a", "ß"]},
    "bs": {"BS": [b"\x00", b"\xff"]},
    "m": {"M": {"B": {"B": b"deep"}, "l": {"L": [{"BOOL": True}, {"NULL": True}, {"B": b"z"}]}}},
}
KEY = {"p": {"S": "t#1"}, "s": {"N": "7"}}
EXPRESSION: dict[str, Any] = {
    "ConditionExpression": "attribute_not_exists(#b) AND s < :at",
    "ExpressionAttributeNames": {"#b": "B"},
    "ExpressionAttributeValues": {":at": {"N": "9"}, ":raw": {"B": b"\x01"}},
}
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "dynamodb",
        "put_item",
        {"TableName": "t", "Item": VALUES, **EXPRESSION, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"},
    ),
    ("dynamodb", "get_item", {"TableName": "t", "Key": KEY, "ConsistentRead": True, "ProjectionExpression": "a, b"}),
    (
        "dynamodb",
        "query",
        {
            "TableName": "t",
            "KeyConditionExpression": "p = :p",
            "ExpressionAttributeValues": {":p": {"S": "é"}},
            "Limit": 3,
            "ScanIndexForward": False,
            "ExclusiveStartKey": KEY,
            "ConsistentRead": True,
        },
    ),
    (
        "dynamodb",
        "update_item",
        {"TableName": "t", "Key": KEY, "UpdateExpression": "SET a = :at", **EXPRESSION, "ReturnValues": "ALL_NEW"},
    ),
    ("dynamodb", "delete_item", {"TableName": "t", "Key": KEY, **EXPRESSION}),
    ("dynamodb", "batch_get_item", {"RequestItems": {"t": {"Keys": [KEY, KEY], "ConsistentRead": True}}}),
    (
        "dynamodb",
        "batch_write_item",
        {"RequestItems": {"t": [{"PutRequest": {"Item": VALUES}}, {"DeleteRequest": {"Key": KEY}}]}},
    ),
    (
        "dynamodb",
        "batch_execute_statement",
        {"Statements": [{"Statement": "INSERT INTO \"t\" VALUE {'k': ?}", "Parameters": [{"S": "x"}, {"B": b"y"}]}]},
    ),
    (
        "dynamodb",
        "execute_statement",
        {"Statement": 'SELECT * FROM "t" WHERE l IN [?]', "Parameters": [{"S": "x"}], "ConsistentRead": True},
    ),
    (
        "dynamodb",
        "transact_write_items",
        {"TransactItems": [{"Put": {"TableName": "t", "Item": VALUES}}], "ClientRequestToken": "mine"},
    ),
    ("sqs", "send_message", {"QueueUrl": "https://sqs/1/q", "MessageBody": '{"é": "✓"}', "DelaySeconds": 5}),
    (
        "sqs",
        "send_message_batch",
        {
            "QueueUrl": "https://sqs/1/q.fifo",
            "Entries": [{"Id": "0", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}],
        },
    ),
    (
        "sqs",
        "change_message_visibility",
        {"QueueUrl": "https://sqs/1/q", "ReceiptHandle": "r+/=", "VisibilityTimeout": 7},
    ),
    ("secretsmanager", "get_secret_value", {"SecretId": "arn:aws:secretsmanager:x", "VersionStage": "AWSPREVIOUS"}),
    (
        "apigatewaymanagementapi",
        "post_to_connection",
        {"ConnectionId": "L0SM9cOFvHcCIhw=", "Data": '{"é": "✓"}'.encode()},
    ),
    ("apigatewaymanagementapi", "post_to_connection", {"ConnectionId": "a/b+c%41 ~é", "Data": b""}),
    ("apigatewaymanagementapi", "delete_connection", {"ConnectionId": "L0SM9cOFvHcCIhw="}),
]


@pytest.fixture(autouse=True)
def at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both wires sign at the same second."""
    now = datetime.fromtimestamp(NOW, UTC)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: now.replace(tzinfo=None))


def parsed(request: bytes) -> tuple[str, str, dict[str, str], bytes]:
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    return method, path, dict(line.split(": ", 1) for line in lines), body


def sent_by_lean(service: str, call: str, parameters: dict[str, Any]) -> tuple[str, str, dict[str, str], bytes]:
    scripted = Scripted(url_of(service))
    getattr(lean(service, scripted), call)(**parameters)
    return parsed(scripted.sent[0])


@pytest.mark.parametrize(("service", "call", "parameters"), CALLS, ids=[f"{one[0]}.{one[1]}" for one in CALLS])
def test_a_call_is_sent_as_botocore_sends_it(service: str, call: str, parameters: dict[str, Any]) -> None:
    theirs: Any = sent_by_boto(service, call, parameters)
    method, path, headers, body = sent_by_lean(service, call, parameters)
    assert (method, f"https://{headers['host']}{path}") == (theirs.method, theirs.url)
    if service == "apigatewaymanagementapi":
        assert body == (theirs.body or b"")
    else:
        assert json.loads(body) == json.loads(theirs.body)
    said = {
        name.lower(): value.decode() if isinstance(value, bytes) else value for name, value in theirs.headers.items()
    }
    unlike = {"user-agent", "authorization", "amz-sdk-invocation-id", "amz-sdk-request", "content-length"}
    assert {name: headers[name] for name in said.keys() - unlike} == {name: said[name] for name in said.keys() - unlike}
    assert headers["content-length"] == str(len(body))
    assert signed_names(headers["authorization"]) == signed_names(said["authorization"])
    assert headers["authorization"] == signed_by_botocore(service, method, path, headers, body)


def text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def signed_names(authorization: str) -> str:
    return authorization.split("SignedHeaders=")[1].split(",", maxsplit=1)[0]


def signed_by_botocore(service: str, method: str, path: str, headers: dict[str, str], body: bytes) -> str:
    """The very request that we send, signed by botocore."""
    left = {"authorization", "x-amz-date", "x-amz-security-token", "content-length", "host"}
    name = "execute-api" if service == "apigatewaymanagementapi" else service
    host = url_of(service).split("/")[2]
    request = AWSRequest(
        method, f"https://{host}{path}", {key: value for key, value in headers.items() if key not in left}, body
    )
    SigV4Auth(BotoCredentials(KEYS.access_key, KEYS.secret_key, KEYS.token), name, "eu-central-1").add_auth(request)
    return str(request.headers["Authorization"])


@given(
    connection=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
        lambda text: text not in (".", "..")
    ),
    data=st.binary(max_size=50),
)
def test_any_connection_id_is_signed_as_botocore_signs_it(connection: str, data: bytes) -> None:
    service = "apigatewaymanagementapi"
    method, path, headers, body = sent_by_lean(
        service, "post_to_connection", {"ConnectionId": connection, "Data": data}
    )
    authorization = headers["authorization"]
    with pytest.MonkeyPatch.context() as patched:
        now = datetime.fromtimestamp(NOW, UTC).replace(tzinfo=None)
        patched.setattr("botocore.auth.get_current_datetime", lambda *_, **__: now)
        assert authorization == signed_by_botocore(service, method, path, headers, body)


def test_the_key_of_a_day_is_derived_once_and_anew_for_another_day_or_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    derived: list[bytes] = []
    digest = hmac.digest

    def counted(key: bytes, message: bytes, name: str) -> bytes:
        if message == b"aws4_request":
            derived.append(key)
        return digest(key, message, name)

    monkeypatch.setattr(hmac, "digest", counted)
    signer, headers = Signer("dynamodb", "us-east-1"), {"host": "h"}
    proofs = [
        signer.sign(keys, "POST", "/", headers, b"", NOW + later)
        for keys, later in (
            (KEYS, 0),
            (KEYS, 60),
            (KEYS, 86_400),
            (Credentials("other", "secret"), 86_400),
            (KEYS, 0),
        )
    ]
    assert len(derived) == 4
    assert proofs[0] == proofs[4]
    assert proofs[0]["x-amz-date"] == time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(NOW))
    assert "x-amz-security-token" not in proofs[3]


def test_repeats_of_one_transaction_carry_one_token_and_two_transactions_two() -> None:
    scripted = Scripted(url_of("dynamodb"))
    client = lean("dynamodb", scripted)
    for _ in range(2):
        client.transact_write_items(TransactItems=[])
    first, second = (json.loads(parsed(sent)[3])["ClientRequestToken"] for sent in scripted.sent)
    assert first != second
    assert 1 <= len(first) <= 36


def test_what_is_neither_json_nor_binary_is_refused_before_it_is_sent() -> None:
    scripted = Scripted(url_of("dynamodb"))
    with pytest.raises(TypeError, match="set"):
        lean("dynamodb", scripted).put_item(TableName="t", Item={"a": {"SS": {"x"}}})
    assert scripted.sent == []


def test_the_trace_of_an_invocation_goes_along_unsigned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "f")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988;Parent=53995c3f;Sampled=1 é")
    theirs = sent_by_boto("sqs", "send_message", {"QueueUrl": "q", "MessageBody": "x"}).headers["X-Amzn-Trace-Id"]
    headers = sent_by_lean("sqs", "send_message", {"QueueUrl": "q", "MessageBody": "x"})[2]
    assert headers["x-amzn-trace-id"] == text(theirs)
    assert "trace" not in signed_names(headers["authorization"])
