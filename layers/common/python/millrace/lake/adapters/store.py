"""Where the archive and the tables are: `s3://bucket/prefix`, or a directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from millrace.lake.adapters.directory_objects import DirectoryObjects
from millrace.lake.ports.objects import Objects
from millrace.ledger.domain.errors import BadRequest

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def open_objects(store: str, **settings: Any) -> Objects:
    """`settings` are those of the S3 client, such as another endpoint."""
    if "://" not in store:
        return DirectoryObjects(Path(store))
    bucket, prefix = bucket_and_prefix(store)
    # A lake in a directory needs no boto3, which is slow to import.
    from millrace.lake.adapters.s3_objects import S3Objects  # noqa: PLC0415

    return S3Objects(s3_client(**settings), bucket, prefix)


def bucket_and_prefix(store: str) -> tuple[str, str]:
    place = urlsplit(store)
    if place.scheme != "s3" or not place.netloc:
        raise BadRequest("A store is s3://bucket/prefix or a directory.", field="store")
    inner = place.path.strip("/")
    return place.netloc, f"{inner}/" if inner else ""


def s3_client(**settings: Any) -> S3Client:
    import boto3  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    config = Config(
        retries={"mode": "standard", "max_attempts": 8}, max_pool_connections=32, s3={"addressing_style": "path"}
    )
    return boto3.client("s3", config=config, **settings)
