"""The raw latency of a stream on the hub's own emulator: an item is put, and a function that does little is called."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.hub import PATIENCE, Hub

NAME = "bench-probe"
CODE = """import os, time

def handler(event, context):
    now = time.time_ns()
    with open(os.environ["ARRIVALS"], "a") as arrivals:
        for record in event["Records"]:
            arrivals.write(record["dynamodb"]["Keys"]["k"]["S"] + " " + str(now) + "\\n")
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """Function and bench are on one machine, with one clock: the function notes in a file when it was called."""

    dynamodb: Any
    arrivals: Path

    def put(self, key: str) -> None:
        self.dynamodb.put_item(TableName=NAME, Item={"k": {"S": key}})

    def called(self, key: str) -> int:
        """Wait until the function was called with this item; when that was, in ns."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if key in (seen := self._seen()):
                return seen[key]
            time.sleep(0.005)
        raise TimeoutError(f"no function was called for item {key}")

    def _seen(self) -> Mapping[str, int]:
        lines = self.arrivals.read_text().splitlines(keepends=True) if self.arrivals.exists() else []
        return {key: int(at) for key, at in (line.split() for line in lines if line.endswith("\n"))}


def deploy(hub: Hub) -> Probe:
    """A stream as the log's, and a mapping as fan_out's."""
    dynamodb, functions = hub.client("dynamodb"), hub.client("lambda")
    arrivals = hub.home / "arrivals"
    table = dynamodb.create_table(
        TableName=NAME,
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
    )["TableDescription"]
    functions.create_function(
        FunctionName=NAME,
        Runtime="python3.13",
        Handler="app.handler",
        Role="arn:aws:iam::000000000000:role/bench",
        Code={"ZipFile": _zip()},
        Environment={"Variables": {"ARRIVALS": str(arrivals)}},
    )
    functions.create_event_source_mapping(
        FunctionName=NAME,
        EventSourceArn=table["LatestStreamArn"],
        StartingPosition="TRIM_HORIZON",
        BatchSize=100,
        MaximumBatchingWindowInSeconds=0,
        FilterCriteria={"Filters": [{"Pattern": json.dumps({"eventName": ["INSERT"]})}]},
    )
    return Probe(dynamodb, arrivals)


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("app.py", CODE)
    return buffer.getvalue()
