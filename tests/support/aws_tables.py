"""The template's tables, made one by one at an endpoint, for tests that need no functions."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest
from botocore.config import Config

from infra import cloudformation
from millrace.ledger.adapters.wire.clients import service_at
from millrace.ledger.adapters.wire.credentials import Credentials
from millrace.ledger.adapters.wire.dynamodb import LeanDynamoDB
from millrace.ledger.adapters.wire.service import Service
from millrace.runtime.clients import LIMITS, RETRIES

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
NAMES = ("Claims", "Log", "State", "Index", "Connections", "Diagnostics", "Delivery", "Waiting")


@dataclass(frozen=True)
class AwsTables:
    client: DynamoDBClient
    claims: str
    log: str
    state: str
    index: str
    connections: str
    diagnostics: str
    delivery: str
    waiting: str


@cache
def client_for(endpoint: str | None) -> DynamoDBClient:
    """One for all tests: making it takes longer than most calls with it."""
    return new_client(endpoint)


def new_client(endpoint: str | None) -> DynamoDBClient:
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=os.environ.get("MILLRACE_TEST_KEY", "test"),
        aws_secret_access_key="test",
        config=Config(retries={"mode": "standard", "max_attempts": 4}, max_pool_connections=64),
    )


class LeanWithTables(LeanDynamoDB):
    """The lean wire, and from boto3 what only tests ask for."""

    def __init__(self, service: Service, admin: DynamoDBClient) -> None:
        super().__init__(service)
        self.create_table, self.scan = admin.create_table, admin.scan


@cache
def lean_client_for(endpoint: str) -> DynamoDBClient:
    """The lean wire with the same timeouts and retries as a function has."""
    credentials = Credentials(os.environ.get("MILLRACE_TEST_KEY", "test"), "test")
    service = service_at(endpoint, "dynamodb", "us-east-1", LIMITS, RETRIES, lambda: credentials)
    return cast("DynamoDBClient", LeanWithTables(service, client_for(endpoint)))


def client_of(request: pytest.FixtureRequest, kind: str = "") -> DynamoDBClient:
    """On the embedded stack: boto3's client, or the lean wire, as the fixture's parameter or another fixture says."""
    endpoint: str = request.getfixturevalue("endpoint")
    return lean_client_for(endpoint) if (kind or request.param) == "lean" else client_for(endpoint)


@cache
def resources() -> dict[str, Any]:
    stated: dict[str, Any] = cloudformation.parse(TEMPLATE.read_text())["Resources"]
    return stated


def create_tables(client: DynamoDBClient, wanted: Sequence[str] = NAMES) -> AwsTables:
    """Key schemas as the template states them, under names of their own. A table that is not wanted is just a name."""
    made = [make_table(client, name) if name in wanted else f"none-{name.lower()}" for name in NAMES]
    return AwsTables(client, *made)


def make_table(client: DynamoDBClient, name: str) -> str:
    """One table of the template, under a name of its own."""
    stated: dict[str, Any] = resources()[f"{name}Table"]["Properties"]
    table = f"test-{uuid.uuid4().hex[:8]}-{name.lower()}"
    client.create_table(
        TableName=table,
        KeySchema=stated["KeySchema"],
        AttributeDefinitions=stated["AttributeDefinitions"],
        BillingMode="PAY_PER_REQUEST",
    )
    return table
