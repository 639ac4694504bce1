"""Everything a hub keeps anywhere, as bytes, and a search through it that no encoding on the way can fool."""

from __future__ import annotations

import base64
import io
import math
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.conftest import Hub

Piece = tuple[str, bytes]
"""Where something was found, and what."""
MAX_INFLATED = 64 * 1024 * 1024
MOST_LINES = 10_000


def evidence(hub: Hub, since_ms: int) -> Iterator[Piece]:
    """Tables, change streams, buckets, queues, logs since then, metrics, and the files of the emulator itself."""
    for collect in (_tables, _change_streams, _buckets, _queues, _metrics, _files):
        yield from collect(hub)
    yield from _logs(hub, since_ms)


def search(pieces: Iterable[Piece], marks: Mapping[str, str]) -> dict[str, set[str]]:
    """Per mark, the places that hold it: as it is, in another case, in hex, UTF-16 or base64, and inside archives."""
    places: dict[str, list[bytes]] = {}
    for place, data in pieces:
        # What is deflated is never all ASCII.
        places.setdefault(place, []).extend([data] if data.isascii() else [data, *_inflated(data)])
    forms = {name: _forms(mark.encode()) for name, mark in marks.items()}
    found: dict[str, set[str]] = {name: set() for name in marks}
    for place, parts in places.items():
        whole = b"\n".join(parts)
        lower = whole.lower()
        for name, (plain, encoded) in forms.items():
            if plain in lower or any(form in whole for form in encoded):
                found[name].add(place)
    return found


def _forms(mark: bytes) -> tuple[bytes, list[bytes]]:
    encoded = [mark.hex().encode(), mark.hex().upper().encode(), mark.decode().encode("utf-16-le")]
    for alphabet in (None, b"-_"):
        encoded += [_base64(mark, shift, alphabet) for shift in range(3)]
    return mark.lower(), encoded


def _base64(mark: bytes, shift: int, alphabet: bytes | None) -> bytes:
    """The characters that are the mark's alone when `shift` bytes of a group of three come before it."""
    text = base64.b64encode(bytes(shift) + mark, alphabet)
    return text[math.ceil(shift * 8 / 6) : (shift + len(mark)) * 8 // 6]


def _inflated(data: bytes) -> Iterator[bytes]:
    """What is packed in the data: deflated with or without a format byte before it, gzipped, or zipped."""
    for start in range(2):
        for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
            with suppress(zlib.error):
                unpacker = zlib.decompressobj(window)
                unpacked = unpacker.decompress(data[start:], MAX_INFLATED)
                if unpacker.eof:
                    yield unpacked
    if data[:2] == b"PK":
        with suppress(zipfile.BadZipFile), zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield archive.read(name)


def _tables(hub: Hub) -> Iterator[Piece]:
    client = hub.client("dynamodb")
    for page in client.get_paginator("list_tables").paginate():
        for table in page["TableNames"]:
            for scanned in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
                for item in scanned["Items"]:
                    yield from ((f"table {table}", leaf) for leaf in _leaves(item))


def _leaves(value: Any) -> Iterator[bytes]:
    """Every name and value of an item, each by itself."""
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield str(name).encode()
            yield from _leaves(member)
    elif isinstance(value, list):
        for member in value:
            yield from _leaves(member)
    else:
        yield str(value).encode()


def _change_streams(hub: Hub) -> Iterator[Piece]:
    client = hub.client("dynamodbstreams")
    for stream in client.list_streams()["Streams"]:
        arn = stream["StreamArn"]
        for shard in client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            at = client.get_shard_iterator(
                StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            ).get("ShardIterator")
            while at:
                answer = client.get_records(ShardIterator=at)
                yield from ((f"changes of {stream['TableName']}", leaf) for leaf in _leaves(answer["Records"]))
                at = answer.get("NextShardIterator") if answer["Records"] else None


def _buckets(hub: Hub) -> Iterator[Piece]:
    client = hub.client("s3")
    for bucket in client.list_buckets()["Buckets"]:
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket["Name"]):
            for one in page.get("Contents", []):
                body = client.get_object(Bucket=bucket["Name"], Key=one["Key"])["Body"].read()
                yield f"bucket {bucket['Name']}", one["Key"].encode()
                yield f"bucket {bucket['Name']}", body


def _queues(hub: Hub) -> Iterator[Piece]:
    """The emulator lets us look without receiving; elsewhere we receive."""
    peeked = httpx.get(f"{hub.endpoint_url}/_ministack/sqs/messages")
    if peeked.is_success:
        regions = [queues for account in peeked.json()["messages"].values() for queues in account.values()]
        for url, messages in (queue for queues in regions for queue in queues.items()):
            yield from ((f"queue {_last(url)}", leaf) for leaf in _leaves(messages))
        return
    client = hub.client("sqs")
    for url in client.list_queues().get("QueueUrls", []):
        asked = {"QueueUrl": url, "MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
        while received := client.receive_message(**asked).get("Messages"):
            yield from ((f"queue {_last(url)}", leaf) for leaf in _leaves(received))


def _logs(hub: Hub, since_ms: int) -> Iterator[Piece]:
    for page in hub.client("logs").get_paginator("describe_log_groups").paginate():
        for group in page["logGroups"]:
            name = group["logGroupName"]
            yield from ((f"log {_last(name)}", line.encode()) for line in log_of(hub, name, since_ms))


def log_of(hub: Hub, group: str, since_ms: int) -> Iterator[str]:
    """Every line of a log group since then, of whichever process."""
    asked: dict[str, Any] = {"logGroupName": group, "startTime": since_ms}
    while True:
        answer = hub.client("logs").filter_log_events(**asked)
        yield from (event["message"] for event in answer["events"])
        if "nextToken" not in answer:
            assert len(answer["events"]) < MOST_LINES, "the emulator gives no more than these, and no token"
            return
        asked["nextToken"] = answer["nextToken"]


def _metrics(hub: Hub) -> Iterator[Piece]:
    for page in hub.client("cloudwatch").get_paginator("list_metrics").paginate():
        yield from (("metrics", leaf) for leaf in _leaves(page["Metrics"]))


def _files(hub: Hub) -> Iterator[Piece]:
    """Processes come and go, and their folders with them."""
    for folder, _, names in os.walk(emulator_home(hub) or ""):
        for name in names:
            with suppress(FileNotFoundError):
                yield "files", (Path(folder) / name).read_bytes()


def emulator_home(hub: Hub) -> Path | None:
    """Where the emulator keeps its files, its log and what functions write to /tmp; None if it is not ours."""
    port = f"GATEWAY_PORT={hub.endpoint_url.rsplit(':', 1)[1]}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"local.launch" in (folder / "cmdline").read_bytes():
                settings = (folder / "environ").read_bytes().split(b"\0")
                if port in settings:
                    state = next(it for it in settings if it.startswith(b"STATE_DIR=")).partition(b"=")[2]
                    return Path(state.decode()).parents[1]
    return None


def _last(name: str) -> str:
    return name.rsplit("/", 1)[-1]
