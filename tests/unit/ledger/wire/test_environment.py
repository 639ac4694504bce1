"""Where the lean wire finds its credentials and its endpoints, and when it leaves the call to boto3."""

from __future__ import annotations

import http.server
import json
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.config import Config

from millrace.ledger.adapters.wire.credentials import (
    FULL_URI,
    MUST_REFRESH_SECONDS,
    REFRESH_SECONDS,
    Credentials,
    EndpointCredentials,
    function_credentials,
)
from millrace.ledger.adapters.wire.dynamodb import LeanDynamoDB
from millrace.ledger.adapters.wire.endpoints import endpoint_url, is_known
from millrace.ledger.adapters.wire.failures import AwsUnanswered
from millrace.ledger.adapters.wire.regions import suffix
from millrace.runtime import clients

NOW = 1_790_000_000.0
HOUR = 3600.0


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("WIRE", raising=False)


class Issuer(http.server.BaseHTTPRequestHandler):
    answers: list[tuple[int, dict[str, Any]]]
    asked: list[str]

    def do_GET(self) -> None:
        type(self).asked.append(self.headers.get("Authorization", ""))
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the base class's name
        pass


def issued(number: int, ends: float) -> dict[str, Any]:
    expiration = datetime.fromtimestamp(ends, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"AccessKeyId": f"k{number}", "SecretAccessKey": "s", "Token": "t", "Expiration": expiration}


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Issuer]]:
    class Own(Issuer):
        answers = [(200, issued(1, NOW + HOUR))]  # noqa: RUF012
        asked = []  # noqa: RUF012

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Own) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv(FULL_URI, f"http://127.0.0.1:{server.server_port}/credentials?x=y")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic abc")
        yield Own
        server.shutdown()


def test_credentials_of_the_environment_come_first(monkeypatch: pytest.MonkeyPatch, issuer: type[Issuer]) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    assert function_credentials() == Credentials("a", "b")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "c")
    assert function_credentials() == Credentials("a", "b", "c")
    assert issuer.asked == []


def test_those_of_lambdas_endpoint_are_kept_until_they_end_soon(issuer: type[Issuer]) -> None:
    now = [NOW]
    credentials = EndpointCredentials(lambda: now[0])
    for _ in range(3):
        assert credentials() == Credentials("k1", "s", "t")
    assert issuer.asked == ["Basic abc"]
    issuer.answers = [(200, issued(2, NOW + 2 * HOUR))]
    now[0] = NOW + HOUR - REFRESH_SECONDS
    assert credentials().access_key == "k2"
    assert len(issuer.asked) == 2


def test_an_endpoint_that_fails_is_asked_again_and_old_credentials_are_used_while_they_hold(
    issuer: type[Issuer],
) -> None:
    now = [NOW]
    credentials = EndpointCredentials(lambda: now[0])
    issuer.answers = [(500, {}), (200, {"no": "key"}), (200, issued(1, NOW + HOUR))]
    assert credentials().access_key == "k1"
    issuer.answers = [(500, {})]
    now[0] = NOW + HOUR - REFRESH_SECONDS
    assert credentials().access_key == "k1"
    now[0] = NOW + HOUR - MUST_REFRESH_SECONDS
    with pytest.raises(AwsUnanswered) as failure:
        credentials()
    assert failure.value.kind == "CredentialRetrievalError"


def test_credentials_are_taken_in_plain_from_this_machine_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FULL_URI, "http://example.com/credentials")
    with pytest.raises(AwsUnanswered, match="this machine"):
        EndpointCredentials()()


def test_without_credentials_no_call_is_made() -> None:
    with pytest.raises(AwsUnanswered) as failure:
        function_credentials()
    assert failure.value.kind == "NoCredentialsError"


REGIONS = sorted(
    {
        region
        for partition in botocore.session.get_session().get_available_partitions()
        for region in botocore.session.get_session().get_available_regions("dynamodb", partition)
    }
)


@pytest.mark.parametrize("service", ["dynamodb", "sqs", "secretsmanager"])
def test_every_region_has_the_endpoints_that_boto3_finds(service: Any) -> None:
    session = boto3.Session(aws_access_key_id="a", aws_secret_access_key="b")
    chosen = [region for region in REGIONS if region in ("us-east-1", "cn-north-1", "us-gov-west-1")] + REGIONS[::7]
    for region in chosen:
        client = session.client(service, region_name=region, config=Config(connect_timeout=1))
        assert endpoint_url(service, service.upper(), region) == client.meta.endpoint_url


def test_every_region_ends_as_its_partition_does() -> None:
    session = botocore.session.get_session()
    described = session.get_data("endpoints")["partitions"]
    for partition in described:
        for region in partition["regions"]:
            assert suffix(region) == partition["dnsSuffix"], region


def test_settings_name_another_endpoint_for_all_or_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://all")
    assert endpoint_url("sqs", "SQS", "us-east-1") == "http://all"
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", "http://one")
    assert endpoint_url("sqs", "SQS", "us-east-1") == "http://one"
    assert endpoint_url("dynamodb", "DYNAMODB", "us-east-1") == "http://all"
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    assert endpoint_url("sqs", "SQS", "us-east-1") == "https://sqs.us-east-1.amazonaws.com"


@pytest.mark.parametrize(
    ("environment", "known"),
    [
        ({"AWS_ACCESS_KEY_ID": "a"}, True),
        ({FULL_URI: "http://localhost"}, True),
        ({}, False),
        ({"AWS_ACCESS_KEY_ID": "a", "HTTPS_PROXY": "http://p"}, False),
        ({"AWS_ACCESS_KEY_ID": "a", "HTTPS_PROXY": "http://p", "AWS_ENDPOINT_URL": "http://localhost"}, True),
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_USE_FIPS_ENDPOINT": "true"}, False),
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_USE_FIPS_ENDPOINT": "false"}, True),
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_USE_DUALSTACK_ENDPOINT": "True"}, False),
    ],
)
def test_an_environment_that_only_boto3_knows_its_way_in_is_left_to_boto3(
    environment: dict[str, str], known: bool
) -> None:
    assert is_known(environment) is known


def test_the_setting_wire_switches_back_to_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    make = clients.dynamodb_client.__wrapped__
    assert isinstance(make(), LeanDynamoDB)
    monkeypatch.setenv("WIRE", "boto3")
    assert make().meta.service_model.service_name == "dynamodb"
