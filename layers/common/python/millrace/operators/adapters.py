"""AWS clients for operators' tools and jobs, which name what they reach instead of having an environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def dynamodb_client(**settings: Any) -> DynamoDBClient:
    """Patient: an operator waits rather than starts again."""
    config = Config(retries={"mode": "standard", "max_attempts": 8}, max_pool_connections=32, connect_timeout=5)
    return boto3.client("dynamodb", config=config, **settings)


def local_tables(stack_file: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """How to reach the embedded stack, and its tables by name."""
    stack = json.loads(stack_file.read_text())
    settings = {
        "endpoint_url": stack["endpoint_url"],
        "region_name": stack["region"],
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
    }
    return settings, stack["tables"]
