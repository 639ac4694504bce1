"""Parquet files with the columns of a table, for tests that need files and no Spark."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, date, datetime

import pyarrow as pa
from pyarrow import parquet

from glue_jobs.columns import TABLES, TableColumn

MOMENT = datetime(2026, 2, 1, 10, tzinfo=UTC)
VALUES = {
    "string": (pa.string(), "text"),
    "bigint": (pa.int64(), 1),
    "boolean": (pa.bool_(), True),
    "date": (pa.date32(), date(2026, 2, 1)),
    "timestamp": (pa.timestamp("us", "UTC"), MOMENT),
    "array<string>": (pa.list_(pa.field("element", pa.string())), ["a"]),
}


def file_of(table: str, rows: int, columns: Sequence[TableColumn] = ()) -> bytes:
    """A file of so many rows that are alike, with all columns of the table or with these."""
    columns = columns or TABLES[table]
    schema = pa.schema([(column.name, VALUES[column.kind][0]) for column in columns])
    row = {column.name: VALUES[column.kind][1] for column in columns}
    made = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist([row] * rows, schema=schema), made)
    return made.getvalue()
