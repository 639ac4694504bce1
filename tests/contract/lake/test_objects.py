"""The object store: one contract for memory, directories, moto and the embedded stack (C3, C6)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws

from millrace.lake.adapters.directory_objects import DirectoryObjects
from millrace.lake.adapters.memory.objects import MemoryObjects
from millrace.lake.adapters.s3_objects import S3Objects
from millrace.lake.ports.objects import ListedObject, Objects
from millrace.ledger.domain.errors import BadRequest, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def s3_client(endpoint: str | None) -> S3Client:
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(s3={"addressing_style": "path"}, retries={"mode": "standard", "max_attempts": 1}),
    )


def on_s3(client: S3Client) -> S3Objects:
    bucket = f"lake-{uuid.uuid4().hex[:12]}"
    client.create_bucket(Bucket=bucket)
    client.put_object(Bucket=bucket, Key="outside", Body=b"not ours")
    return S3Objects(client, bucket, "below/")


@pytest.fixture(params=["memory", "directory", "moto", "embedded"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Objects]:
    if request.param == "memory":
        yield MemoryObjects()
    elif request.param == "directory":
        yield DirectoryObjects(tmp_path)
    elif request.param == "moto":
        with mock_aws():
            yield on_s3(s3_client(None))
    else:
        yield on_s3(s3_client(request.getfixturevalue("endpoint")))


def test_what_was_put_can_be_read_and_listed(objects: Objects) -> None:
    for name, data in {"a/2": b"two", "a/1": b"", "ab": b"x", "b": b"y", "a/Z/é": b"three"}.items():
        assert objects.put(name, data)
    assert list(objects.list("a/")) == [ListedObject("a/1", 0), ListedObject("a/2", 3), ListedObject("a/Z/é", 5)]
    assert [one.name for one in objects.list("")] == ["a/1", "a/2", "a/Z/é", "ab", "b"]
    assert list(objects.list("none/")) == []
    found = objects.get("a/2")
    assert found
    assert found.data == b"two"
    assert objects.get("a/3") is None


def test_a_listing_goes_on_after_a_name(objects: Objects) -> None:
    for name in ("a/1", "a/2", "a/é", "b/1"):
        objects.put(name, b"x")
    assert [one.name for one in objects.list("a/", "a/1")] == ["a/2", "a/é"]
    assert [one.name for one in objects.list("a/", "a/15")] == ["a/2", "a/é"]
    assert [one.name for one in objects.list("a/", "a/é")] == []
    assert [one.name for one in objects.list("b/", "a/é")] == ["b/1"]


def test_a_taken_name_stays_as_it_is(objects: Objects) -> None:
    """C3."""
    assert objects.put("a", b"first")
    assert not objects.put("a", b"second")
    assert not objects.put("a", b"first")
    found = objects.get("a")
    assert found
    assert found.data == b"first"


def test_a_swap_needs_the_tag_of_what_is_there(objects: Objects) -> None:
    """C6."""
    objects.put("pointer", b"one")
    first = objects.get("pointer")
    assert first
    assert objects.swap("pointer", b"two", first.tag)
    assert not objects.swap("pointer", b"three", first.tag)
    assert not objects.swap("absent", b"x", first.tag)
    second = objects.get("pointer")
    assert second
    assert second.data == b"two"
    assert objects.get("absent") is None


def test_what_was_deleted_is_gone_and_its_name_is_free(objects: Objects) -> None:
    objects.put("a", b"1")
    objects.delete("a")
    objects.delete("a")
    assert objects.get("a") is None
    assert objects.put("a", b"2")


def test_of_many_racers_one_wins(objects: Objects, request: pytest.FixtureRequest) -> None:
    """C6. moto is single-threaded."""
    workers = 1 if "moto" in request.node.name else 8
    objects.put("pointer", b"zero")
    start = objects.get("pointer")
    assert start
    with ThreadPoolExecutor(workers) as pool:
        puts = list(pool.map(lambda n: objects.put("new", b"%d" % n), range(24)))
        swaps = list(pool.map(lambda n: objects.swap("pointer", b"%d" % n, start.tag), range(24)))
    assert (puts.count(True), swaps.count(True)) == (1, 1)
    new, pointer = objects.get("new"), objects.get("pointer")
    assert new
    assert pointer
    assert (int(new.data), int(pointer.data)) == (puts.index(True), swaps.index(True))


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../up", "a/../../b", "a//b", "."])
def test_a_name_never_leaves_its_directory(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadRequest, match="never leaves"):
        DirectoryObjects(tmp_path / "root").put(name, b"x")


def test_a_store_that_does_not_answer_is_unavailable() -> None:
    store = S3Objects(s3_client("http://127.0.0.1:9"), "none")
    for call in (lambda: store.get("a"), lambda: store.put("a", b""), lambda: list(store.list(""))):
        with pytest.raises(Unavailable):
            call()
