"""Small tables out of Python values. Spark's own way starts Python workers for them; a literal does not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812


def literal_rows(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: str) -> DataFrame:
    """The rows as a DataFrame with this schema, also if there are none."""
    parsed = F.from_json(F.lit(json.dumps([dict(row) for row in rows])), f"array<struct<{schema}>>")
    return spark.range(1).select(F.inline(parsed))
