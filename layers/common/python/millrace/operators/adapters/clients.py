"""AWS clients for operators' tools and jobs, which name what they reach instead of having an environment."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config

from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.domain.errors import BadRequest

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def dynamodb_client(**settings: Any) -> DynamoDBClient:
    """Patient: an operator waits rather than starts again."""
    config = Config(retries={"mode": "standard", "max_attempts": 8}, max_pool_connections=32, connect_timeout=5)
    return boto3.client("dynamodb", config=config, **settings)


def identity_of(client: DynamoDBClient, tables: Iterable[str]) -> str:
    """Tells these very tables from others that had the same names before."""
    with translated():
        described = [client.describe_table(TableName=table)["Table"] for table in tables]
    return " ".join(
        f"{one['TableName']}:{one.get('TableId') or one['CreationDateTime'].timestamp()}" for one in described
    )


def local_stack(stack_file: Path) -> dict[str, Any]:
    """What the embedded stack says of itself. Raises `BadRequest` if its file was left behind."""
    stack: dict[str, Any] = json.loads(stack_file.read_text())
    address = urlsplit(stack["endpoint_url"])
    try:
        with socket.create_connection((address.hostname or "", address.port or 80), timeout=3):
            return stack
    except OSError as error:
        raise BadRequest(
            f"{stack_file} was left behind: nothing answers at {stack['endpoint_url']}. Start the hub with `make run`."
        ) from error


def local_tables(stack_file: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """How to reach the embedded stack, and its tables by name. Raises `BadRequest` if its file was left behind."""
    stack = local_stack(stack_file)
    settings = {
        "endpoint_url": stack["endpoint_url"],
        "region_name": stack["region"],
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
    }
    return settings, stack["tables"]
