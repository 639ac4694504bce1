"""AWS clients of the functions, with few retries and short timeouts."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.domain.errors import Unavailable
from millrace.runtime.settings import socket_url

if TYPE_CHECKING:
    from mypy_boto3_apigatewaymanagementapi import ApiGatewayManagementApiClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sqs import SQSClient

_CONFIG = Config(
    retries={"mode": "standard", "max_attempts": 4}, connect_timeout=2, read_timeout=5, max_pool_connections=32
)


_SOCKET_CONFIG = Config(
    retries={"mode": "standard", "max_attempts": 2}, connect_timeout=1, read_timeout=2, max_pool_connections=64
)


_OBJECT_CONFIG = Config(
    retries={"mode": "standard", "max_attempts": 4}, connect_timeout=2, read_timeout=30, max_pool_connections=32
)


UNREADABLE = "A secret of the hub cannot be read now; send the same request again."


@cache
def dynamodb_client() -> DynamoDBClient:
    return boto3.client("dynamodb", config=_CONFIG)


def s3_client() -> S3Client:
    """An emulator has no name for each bucket; there a bucket is part of the path."""
    style = Config(s3={"addressing_style": "path" if os.environ.get("AWS_ENDPOINT_URL") else "virtual"})
    return boto3.client("s3", config=_OBJECT_CONFIG.merge(style))


def sqs_client() -> SQSClient:
    return boto3.client("sqs", config=_CONFIG)


@cache
def lambda_client() -> LambdaClient:
    return boto3.client("lambda", config=_CONFIG)


def socket_client() -> ApiGatewayManagementApiClient:
    """The management API of the WebSocket API's stage."""
    return boto3.client("apigatewaymanagementapi", endpoint_url=socket_url(), config=_SOCKET_CONFIG)


@cache
def secrets_client() -> SecretsManagerClient:
    return boto3.client("secretsmanager", config=_CONFIG)


def read_secret_stage(arn: str, stage: str) -> str | None:
    """A secret's text at a stage of its rotation; None if no version is at that stage. Raises `Unavailable`."""
    client = secrets_client()
    try:
        with translated():
            return client.get_secret_value(SecretId=arn, VersionStage=stage)["SecretString"]
    except Unavailable as error:
        if isinstance(error.__cause__, client.exceptions.ResourceNotFoundException):
            return None
        raise Unavailable(UNREADABLE, cause=_code(error.__cause__)) from error


def _code(error: BaseException | None) -> str:
    """What AWS calls the failure: never the text, which may repeat what was asked for."""
    response = getattr(error, "response", {})
    return str(response.get("Error", {}).get("Code") or type(error).__name__)
