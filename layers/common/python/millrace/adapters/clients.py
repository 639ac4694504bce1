"""AWS clients as this system wants them: few, patient, and bounded in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
from aws_lambda_powertools.utilities.parameters import get_secret
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

_CONFIG = Config(
    retries={"mode": "standard", "max_attempts": 4}, connect_timeout=2, read_timeout=5, max_pool_connections=32
)


def dynamodb_client() -> DynamoDBClient:
    return boto3.client("dynamodb", config=_CONFIG)


def sqs_client() -> SQSClient:
    return boto3.client("sqs", config=_CONFIG)


def read_secret(arn: str, max_age_seconds: int) -> str:
    """A secret's text, kept in memory for `max_age_seconds`."""
    return str(get_secret(arn, max_age=max_age_seconds))
