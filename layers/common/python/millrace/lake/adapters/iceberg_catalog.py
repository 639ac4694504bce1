"""Where Iceberg tables are registered: in the Glue Data Catalog for a bucket, in a SQLite file beside a directory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog

from millrace.lake.adapters.iceberg_tables import FOLDER, IcebergTables
from millrace.lake.adapters.store import bucket_and_prefix
from millrace.lake.domain.edition import DATABASE
from millrace.lake.ports.objects import Objects
from millrace.lake.ports.open_tables import DescribedColumn

CATALOG_FILE = f"{FOLDER}catalog.db"


@contextmanager
def iceberg_tables(
    store: str,
    objects: Objects,
    columns: Mapping[str, Sequence[DescribedColumn]],
    database: str = DATABASE,
    **settings: Any,
) -> Iterator[IcebergTables]:
    """The tables of a store, `s3://bucket/prefix` or a directory. `settings` are those of its S3 client."""
    root, catalog = _opened(store, settings)
    try:
        yield IcebergTables(catalog, database, root, objects, columns, lambda: time.time_ns() // 1_000_000)
    finally:
        catalog.close()


def _opened(store: str, settings: Mapping[str, Any]) -> tuple[str, Catalog]:
    if "://" not in store:
        from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - on Glue there is no SQLAlchemy

        directory = Path(store).absolute()
        file = directory / CATALOG_FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        return directory.as_uri() + "/", SqlCatalog("millrace", uri=f"sqlite:///{file}")
    from pyiceberg.catalog.glue import GlueCatalog  # noqa: PLC0415 - a directory needs no boto3

    bucket, prefix = bucket_and_prefix(store)
    return f"s3://{bucket}/{prefix}", GlueCatalog("millrace", **_properties(settings))


def _properties(settings: Mapping[str, Any]) -> dict[str, str]:
    names = {
        "endpoint_url": ("glue.endpoint", "s3.endpoint"),
        "region_name": ("client.region",),
        "aws_access_key_id": ("client.access-key-id",),
        "aws_secret_access_key": ("client.secret-access-key",),
    }
    return {
        name: settings[setting] for setting, all_names in names.items() if setting in settings for name in all_names
    }
