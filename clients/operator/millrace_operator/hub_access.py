"""A hub's own storage, for operators' commands: the local stack's, or a deployed stack's through AWS credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millrace_client.errors import NoHub, Unreachable, Usage
from millrace_client.local_stack import STACK_FILE, folder_of, required

if TYPE_CHECKING:
    from millrace.operators.wiring.hub import Hub

Stack = Annotated[
    str | None,
    typer.Option("--stack", envvar="MILLRACE_STACK", help="The CloudFormation stack of a hub; default: the local one."),
]
TABLES = ("claims", "log", "state", "index", "delivery")
Region = Annotated[str | None, typer.Option("--region", envvar="AWS_REGION", help="Where that stack is.")]


def open_hub(stack: str | None, region: str | None) -> Hub:
    """Raises `NoHub`, `Usage` or `Unreachable`."""
    return _deployed(stack, region) if stack else _local()


def _local() -> Hub:
    required("name one with --stack")
    folder = folder_of() or Path()
    from millrace.operators.adapters.clients import local_tables  # noqa: PLC0415 - it brings boto3, slow to import

    file = folder / STACK_FILE
    try:
        settings, tables = local_tables(file)
        return _hub(settings, tables, json.loads(file.read_text())["archive_bucket"])
    except (ValueError, KeyError, TypeError) as error:
        raise NoHub(f"{file} cannot be read: {error!r}. Start the hub again with `make run`.") from error


def _deployed(stack: str, region: str | None) -> Hub:
    import boto3  # noqa: PLC0415 - slow to import, and most commands need none of it
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    settings: dict[str, Any] = {"region_name": region} if region else {}
    try:
        found = boto3.client("cloudformation", **settings).describe_stacks(StackName=stack)["Stacks"][0]
    except (BotoCoreError, ClientError) as error:
        raise Unreachable(f"Cannot read the stack {stack}: {error}") from error
    outputs = {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}
    try:
        tables = {name: outputs[f"{name.capitalize()}TableName"] for name in TABLES}
        return _hub(settings, tables, outputs["ArchiveBucketName"])
    except KeyError as error:
        raise Usage(f"The stack {stack} is no hub, or an old one: it has no output {error}.") from error


def _hub(settings: Mapping[str, Any], tables: Mapping[str, str], bucket: str) -> Hub:
    from millrace.lake.adapters.store import open_objects  # noqa: PLC0415
    from millrace.operators.adapters.clients import dynamodb_client  # noqa: PLC0415
    from millrace.operators.wiring.hub import Hub  # noqa: PLC0415

    objects = open_objects(f"s3://{bucket}", **settings)
    return Hub(
        dynamodb_client(**settings),
        tables["log"],
        tables["state"],
        tables["delivery"],
        objects,
        claims_table=tables["claims"],
        index_table=tables["index"],
    )
