"""Objects in S3, by its conditional writes (`If-None-Match`, `If-Match`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from millrace.lake.ports.objects import Fetched, ListedObject
from millrace.ledger.adapters.aws_errors import translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MISSING = frozenset({"NoSuchKey", "404"})
REFUSED = frozenset({"PreconditionFailed", "412"})
RACING = frozenset({"ConditionalRequestConflict", "409"})
"""Two conditional writes met inside S3: neither is refused yet, ask again."""
TRIES = 5


@dataclass(frozen=True, slots=True)
class S3Objects:
    """Names are keys below `prefix`, which is empty or ends with a slash."""

    client: S3Client
    bucket: str
    prefix: str = ""

    def list(self, prefix: str, after: str = "") -> Iterator[ListedObject]:
        asked: Any = {"Bucket": self.bucket, "Prefix": self.prefix + prefix}
        start: Any = {"StartAfter": self.prefix + after} if after else {}
        pages = iter(self.client.get_paginator("list_objects_v2").paginate(**asked, **start))
        while True:
            with translated():
                page = next(pages, None)
            if page is None:
                return
            for item in page.get("Contents", []):
                yield ListedObject(item["Key"].removeprefix(self.prefix), item["Size"])

    def get(self, name: str) -> Fetched | None:
        with translated():
            try:
                answer = self.client.get_object(Bucket=self.bucket, Key=self.prefix + name)
            except ClientError as error:
                if _code(error) in MISSING:
                    return None
                raise
            return Fetched(answer["Body"].read(), answer["ETag"])

    def put(self, name: str, data: bytes) -> bool:
        return self._write(name, data, IfNoneMatch="*")

    def swap(self, name: str, data: bytes, tag: str) -> bool:
        return self._write(name, data, IfMatch=tag)

    def delete(self, name: str) -> None:
        with translated():
            self.client.delete_object(Bucket=self.bucket, Key=self.prefix + name)

    def _write(self, name: str, data: bytes, **condition: Any) -> bool:
        def write() -> None:
            self.client.put_object(Bucket=self.bucket, Key=self.prefix + name, Body=data, **condition)

        return _applied(write)


def _applied(write: Callable[[], None]) -> bool:
    with translated():
        for left in reversed(range(TRIES)):
            try:
                write()
            except ClientError as error:
                if _code(error) in REFUSED | MISSING:
                    return False
                if _code(error) not in RACING or not left:
                    raise
            else:
                return True
    return False


def _code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")
