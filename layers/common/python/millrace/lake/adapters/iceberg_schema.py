"""The schema and the properties of an Iceberg table, made from the columns that are stated once for all readers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    IcebergType,
    ListType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestamptzType,
)

from millrace.lake.ports.open_tables import DescribedColumn

TYPES: Mapping[str, PrimitiveType] = {
    "string": StringType(),
    "bigint": LongType(),
    "boolean": BooleanType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
}
ARRAY = re.compile(r"array<(\w+)>")
NAME_MAPPING = "schema.name-mapping.default"
"""Files have no field ids: readers find a column by its name."""
PROPERTIES: Mapping[str, str] = {
    "format-version": "2",
    # A lost race is not for the library to repair: what to show is worked out anew from the pointer.
    "commit.retry.num-retries": "0",
    # By these bounds a query for a ledger, or for a time, passes over files.
    "write.metadata.metrics.column.ledger": "full",
    "write.metadata.metrics.column.payload": "counts",
}


def schema_of(columns: Sequence[DescribedColumn]) -> Schema:
    """Ids are Iceberg's own business: a catalog gives new ones when it makes the table."""
    fields = [
        NestedField(number, column.name, _type(column.kind, 1000 + number), required=False, doc=column.meaning or None)
        for number, column in enumerate(columns, 1)
    ]
    return Schema(*fields)


def _type(kind: str, element: int) -> IcebergType:
    array = ARRAY.fullmatch(kind)
    return ListType(element, TYPES[array[1]], element_required=False) if array else TYPES[kind]
