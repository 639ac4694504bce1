"""When the secret store fails, a caller may try again, and neither the answer nor the log tells a secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber

from millrace.ledger.adapters.keyring import StagedKeys
from millrace.ledger.domain.errors import Unavailable
from millrace.runtime import bearer, clients
from millrace.runtime.http import Request, Response, endpoint

ARN = "arn:aws:secretsmanager:us-east-1:1:secret:token"
TOLD = "s3cr3t"
FAILURES = {
    "AccessDeniedException": "AccessDeniedException",
    "InternalServiceError": "InternalServiceError",
    "DecryptionFailure": "DecryptionFailure",
    "ResourceNotFoundException": "EmptySecret",
}
"""What the store says, and what we tell."""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    client = boto3.client("secretsmanager", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    monkeypatch.setattr(clients, "secrets_client", lambda: client)
    for name, value in {"TOKEN_ISSUER": "i", "TOKEN_AUDIENCE": "a", "TOKEN_SECRET_ARN": ARN}.items():
        monkeypatch.setenv(name, value)
    bearer.tokens.cache_clear()
    with Stubber(client) as stubber:
        yield stubber
    bearer.tokens.cache_clear()


def whoami(request: Request) -> Response:
    return Response(request.identity().client_id)


def ask() -> dict[str, Any]:
    event = {"routeKey": "GET /x", "headers": {"authorization": "Bearer a.b.c"}}
    return endpoint(whoami)(event, None)


@pytest.mark.parametrize(("code", "cause"), FAILURES.items())
def test_a_request_is_answered_503_with_a_time_to_retry(
    store: Stubber, code: str, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    store.add_client_error("get_secret_value", code, f"no access to {TOLD}")
    answer = ask()
    assert (answer["statusCode"], answer["headers"]["retry-after"]) == (503, "1")
    assert json.loads(answer["body"])["details"] == {"cause": cause}
    log = "".join(str(vars(record)) for record in caplog.records)
    assert cause in log
    assert "unexpected_error" not in log
    assert TOLD not in log + answer["body"]


def test_so_is_one_when_the_store_cannot_be_reached(store: Stubber, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://secrets")

    monkeypatch.setattr(clients.secrets_client(), "get_secret_value", unreachable)
    assert ask()["statusCode"] == 503
    with pytest.raises(Unavailable) as failure:
        clients.read_secret_stage(ARN, "AWSCURRENT")
    assert failure.value.details == {"cause": "EndpointConnectionError"}


def test_a_staged_secret_that_is_not_there_is_none_and_other_failures_pass(store: Stubber) -> None:
    store.add_client_error("get_secret_value", "ResourceNotFoundException")
    assert clients.read_secret_stage(ARN, "AWSPREVIOUS") is None
    store.add_client_error("get_secret_value", "AccessDeniedException")
    with pytest.raises(Unavailable, match="secret of the hub"):
        clients.read_secret_stage(ARN, "AWSCURRENT")


def test_an_empty_secret_is_our_fault_and_may_pass() -> None:
    with pytest.raises(Unavailable):
        StagedKeys(lambda _: "", lambda: 0).current()
