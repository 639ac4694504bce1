"""A value planted in every kind of place a hub keeps things in, so that a search can show that it would find one."""

from __future__ import annotations

import base64
import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from millrace.ledger.domain.packing import pack
from millrace.ledger.domain.page import Record
from tests.e2e.conftest import Hub
from tests.e2e.evidence import emulator_home
from tests.e2e.streams_api import now_ms


@contextmanager
def planted(stack: Hub, plant: str) -> Iterator[set[str]]:
    """One value in every kind of place, each encoded in another way; gone again afterwards."""
    dynamodb, s3, sqs, logs = (stack.client(name) for name in ("dynamodb", "s3", "sqs", "logs"))
    hub, value, key = stack.stack, f"{plant}-planted", {"p": {"S": "planted"}, "s": {"S": "planted"}}
    page = pack([Record("id", bytes(32), json.dumps([{"a": value}] * 100).encode())])
    assert value.encode() not in page, "not deflated"
    dynamodb.put_item(TableName=hub.tables["state"], Item={**key, "e": {"B": page}})
    nested = {"M": {"l": {"L": [{"S": base64.b64encode(b"x" + value.encode()).decode()}]}}}
    dynamodb.put_item(TableName=hub.tables["connections"], Item={**key, "m": nested})
    dynamodb.put_item(TableName=hub.tables["diagnostics"], Item={**key, "d": {"B": zlib.compress(value.encode())}})
    archive, bucket = io.BytesIO(), f"planted-{plant}"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("inside", f"{'x' * 1000}{value}")
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="archive.zip", Body=archive.getvalue())
    queue = hub.queues["settle_dead_letters"]
    sqs.send_message(QueueUrl=queue, MessageBody=base64.urlsafe_b64encode(b"xy" + value.encode()).decode())
    group, stream = f"/aws/lambda/{hub.functions['emit']}", f"planted-{plant}"
    logs.create_log_stream(logGroupName=group, logStreamName=stream)
    line = {"timestamp": now_ms(), "message": json.dumps({"reason": value.upper()})}
    logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=[line])
    measured = {"MetricName": "Planted", "Value": 1.0, "Dimensions": [{"Name": "of", "Value": value.encode().hex()}]}
    stack.client("cloudwatch").put_metric_data(Namespace="Planted", MetricData=[measured])
    home = emulator_home(stack)
    places = {f"table {hub.tables[table]}" for table in ("state", "connections", "diagnostics")}
    places |= {f"bucket {bucket}", f"queue {queue.rsplit('/', 1)[-1]}", f"log {hub.functions['emit']}", "metrics"}
    if home:
        (home / "planted").write_bytes(b"\x00" + value.encode())
        places.add("files")
    try:
        yield places
    finally:
        for table in ("state", "connections", "diagnostics"):
            dynamodb.delete_item(TableName=hub.tables[table], Key=key)
        s3.delete_object(Bucket=bucket, Key="archive.zip")
        s3.delete_bucket(Bucket=bucket)
        for message in sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", []):
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        logs.delete_log_stream(logGroupName=group, logStreamName=stream)
        if home:
            (home / "planted").unlink()
