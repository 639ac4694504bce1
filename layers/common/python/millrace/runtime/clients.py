"""AWS clients of the functions, with few retries and short timeouts: over the lean wire, or boto3's own."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from millrace.ledger.adapters.aws_errors import code_of, translated
from millrace.ledger.adapters.wire.clients import lean_dynamodb, lean_queues, lean_secrets, lean_sockets
from millrace.ledger.adapters.wire.connections import WireLimits
from millrace.ledger.adapters.wire.endpoints import is_known
from millrace.ledger.domain.errors import Unavailable
from millrace.runtime.settings import setting, socket_url

if TYPE_CHECKING:
    from mypy_boto3_apigatewaymanagementapi import ApiGatewayManagementApiClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sqs import SQSClient

RETRIES, LIMITS = 4, WireLimits(connect_seconds=2, read_seconds=5, most_idle=32)
SOCKET_RETRIES, SOCKET_LIMITS = 2, WireLimits(connect_seconds=1, read_seconds=2, most_idle=64)
OBJECT_RETRIES, OBJECT_LIMITS = 4, WireLimits(connect_seconds=2, read_seconds=30, most_idle=32)

UNREADABLE = "A secret of the hub cannot be read now; send the same request again."


def is_lean() -> bool:
    """Whether calls go over the lean wire. The setting WIRE=boto3 says no, and so does an environment that only boto3
    knows its way in."""
    return setting("WIRE", "lean") != "boto3" and is_known(os.environ)


@cache
def dynamodb_client() -> DynamoDBClient:
    if is_lean():
        return cast("DynamoDBClient", lean_dynamodb(LIMITS, RETRIES))
    client: DynamoDBClient = _boto3_client("dynamodb", LIMITS, RETRIES)
    return client


def s3_client() -> S3Client:
    """An emulator has no name for each bucket; there a bucket is part of the path."""
    style = {"addressing_style": "path" if os.environ.get("AWS_ENDPOINT_URL") else "virtual"}
    client: S3Client = _boto3_client("s3", OBJECT_LIMITS, OBJECT_RETRIES, s3=style)
    return client


def sqs_client() -> SQSClient:
    if is_lean():
        return cast("SQSClient", lean_queues(LIMITS, RETRIES))
    client: SQSClient = _boto3_client("sqs", LIMITS, RETRIES)
    return client


@cache
def lambda_client() -> LambdaClient:
    """Always boto3's: only crowds need it."""
    client: LambdaClient = _boto3_client("lambda", LIMITS, RETRIES)
    return client


def socket_client() -> ApiGatewayManagementApiClient:
    """The management API of the WebSocket API's stage."""
    if is_lean():
        return cast("ApiGatewayManagementApiClient", lean_sockets(SOCKET_LIMITS, SOCKET_RETRIES, socket_url()))
    service = "apigatewaymanagementapi"
    client: ApiGatewayManagementApiClient = _boto3_client(service, SOCKET_LIMITS, SOCKET_RETRIES, url=socket_url())
    return client


@cache
def secrets_client() -> SecretsManagerClient:
    if is_lean():
        return cast("SecretsManagerClient", lean_secrets(LIMITS, RETRIES))
    client: SecretsManagerClient = _boto3_client("secretsmanager", LIMITS, RETRIES)
    return client


def _boto3_client(service: Any, limits: WireLimits, retries: int, url: str | None = None, **more: Any) -> Any:
    import boto3
    from botocore.config import Config

    config = Config(
        retries={"mode": "standard", "max_attempts": retries},
        connect_timeout=limits.connect_seconds,
        read_timeout=limits.read_seconds,
        max_pool_connections=limits.most_idle,
        **more,
    )
    return boto3.client(service, endpoint_url=url, config=config)


def read_secret_stage(arn: str, stage: str) -> str | None:
    """A secret's text at a stage of its rotation; None if no version is at that stage. Raises `Unavailable`."""
    client = secrets_client()
    try:
        with translated():
            return client.get_secret_value(SecretId=arn, VersionStage=stage)["SecretString"]
    except Unavailable as error:
        code = code_of(error.__cause__)
        if code == "ResourceNotFoundException":
            return None
        raise Unavailable(UNREADABLE, cause=code) from error
