"""Parse: archive lines into columns. What is wrong with a line is a column too; no line is lost and none ends the run.

A line's payload is its last member and stays the text it is: only what stands before it is taken apart.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

from glue_jobs.columns import TABLES
from millrace.lake.domain.archive import FOLDER, MAX_LINE_BYTES, MAX_TIME_MS
from millrace.lake.domain.catalog import MAX_VERSION
from millrace.lake.domain.edition import EVENTS

MALFORMED, TOO_LARGE = "malformed", "too_large"
CORRUPT = "_corrupt"
MARK = secrets.token_hex(16)
"""Stands behind a payload while it is checked. No line can know it, so none can close the brackets by itself."""
TYPES: Mapping[str, DataType] = {"string": StringType(), "bigint": LongType(), "array<string>": ArrayType(StringType())}
HEAD = StructType(
    [
        *(StructField(column.name, TYPES[column.line]) for column in TABLES[EVENTS] if column.line),
        StructField(CORRUPT, StringType()),
    ]
)
"""What stands before the payload of a line."""
CHECKED = StructType([*HEAD.fields, StructField(MARK, ArrayType(StructType([StructField(MARK, StringType())])))])
STRICT = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
TEXTS = ("ledger", "tenant", "event_type", "idempotency_key", "occurred_at", "source")
UTC = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|\+00:00)$"
PAYLOAD = ',"payload":'
DRAWERS = 65_536


def archive_object() -> Column:
    """The name of the object that a row was read from."""
    return F.regexp_extract(F.col("_metadata.file_path"), f"({FOLDER}[^/]+)$", 1)


def parse(lines: DataFrame) -> DataFrame:
    """(`line`, `object`) → the line's fields, `key`, and `reason` and `field` where it is not an event."""
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    measured = lines.withColumn("bytes", F.octet_length("line")).withColumn(
        "head", F.when(F.col("bytes") <= MAX_LINE_BYTES, F.concat(F.substring_index("line", PAYLOAD, 1), F.lit("}")))
    )
    cut = measured.withColumn("payload", _payload())
    # Nearly every line passes the one look at all of it; only what does not is looked at part by part.
    once = cut.withColumn("once", F.from_json(_marked(), CHECKED, {**options, **STRICT})).withColumn("whole", _whole())
    head = F.when(F.col("whole"), F.col("once")).otherwise(F.from_json("head", CHECKED, options))
    parsed = once.withColumn("e", head).withColumn("at", F.to_timestamp("e.occurred_at"))
    names = [field.name for field in HEAD.fields if field.name not in (CORRUPT, "occurred_at")]
    judged = parsed.withColumn("field", F.when(F.col("head").isNotNull(), _first_problem()))
    return judged.select(
        "object",
        "line",
        "bytes",
        *(F.col(f"e.{name}").alias(name) for name in names),
        F.col("at").alias("occurred_at"),
        "payload",
        F.when(F.col("head").isNull(), TOO_LARGE).when(F.col("field").isNotNull(), MALFORMED).alias("reason"),
        "field",
        F.substring_index("e.ledger", "#", 1).alias("contract"),
        event_key(F.col("e.ledger"), F.col("e.idempotency_key"), F.col("line")).alias("key"),
    )


def event_key(ledger: Column, idempotency_key: Column, line: Column) -> Column:
    """Sixteen bytes that stand for a ledger's idempotency key; of a line without one, for the line itself."""
    named = F.coalesce(F.concat(ledger, F.lit("\0"), idempotency_key), line)
    return F.unhex(F.substring(F.sha2(named, 256), 1, 32))


def drawer(ledger: Column) -> Column:
    """Where the key index has a ledger's keys. It is sorted by this, so a run reads the drawers of its own ledgers."""
    return F.pmod(F.xxhash64(ledger), F.lit(DRAWERS)).cast("int")


def _payload() -> Column:
    """What stands between the payload's name and the brace that closes the line; null if there is no payload.

    Counted in bytes: to count characters, Spark would walk through every line.
    """
    start = f"octet_length(head) + {len(PAYLOAD)}"
    cut = F.expr(f"CAST(substring(CAST(line AS BINARY), {start}, bytes - ({start})) AS STRING)")
    return F.when(F.octet_length("head") <= F.col("bytes"), cut)


def _marked() -> Column:
    """The line with its payload, if that may be an object, and the mark as the two elements of one more member."""
    head = F.substring_index("line", PAYLOAD, 1)
    marked = F.concat(head, F.lit(f',"{MARK}":['), F.col("payload"), F.lit(f',{{"{MARK}":"{MARK}"}}]}}'))
    # White space that our writer does not make is left to the slower look, which refuses it.
    odd = F.contains("payload", F.lit("\t")) | F.contains("payload", F.lit("\r"))
    return F.when(F.col("head").isNotNull() & F.startswith("payload", F.lit("{")) & ~odd, marked)


def _whole() -> Column:
    """Whether the line is JSON from end to end, and its payload one object."""
    elements = F.col(f"once.{MARK}")
    marked = (F.size(elements) == 2) & (F.element_at(elements, 2)[MARK] == MARK)
    return F.coalesce(F.col(f"once.{CORRUPT}").isNull() & marked, F.lit(False))


def _first_problem() -> Column:
    """The field that breaks a rule, in the order a person would look; null for a good line."""
    e = {field.name: F.col(f"e.{field.name}") for field in HEAD.fields}
    problems = [(F.col("payload").isNull(), "payload"), (~F.endswith("line", F.lit("}")), "line")]
    # A JSON number or object would pass as a text; in our lines a text begins with its quote.
    problems += [(~_begins(name, '"'), name) for name in TEXTS]
    problems += [(e[name].isNull() | (e[name] == ""), name) for name in TEXTS]
    problems += [
        (~e["occurred_at"].rlike(UTC) | F.col("at").isNull(), "occurred_at"),
        (e["event_version"].isNull() | ~e["event_version"].between(1, MAX_VERSION), "event_version"),
        (e["committed_at"].isNull() | ~e["committed_at"].between(0, MAX_TIME_MS), "committed_at"),
        (e["partitions"].isNull() | ~(_begins("partitions", '["') | _begins("partitions", "[]")), "partitions"),
        *((_present(name) & ~_begins(name, '"'), name) for name in ("client_id", "trace_id")),
        (
            _present("sequence_position") & (e["sequence_position"].isNull() | (e["sequence_position"] < 1)),
            "sequence_position",
        ),
        (e[CORRUPT].isNotNull(), "line"),
        (~F.when(F.col("whole"), True).otherwise(_is_json(F.col("payload"))), "payload"),
    ]
    return F.coalesce(*(F.when(broken, name) for broken, name in problems))


def _present(name: str) -> Column:
    return F.col("head").contains(f'"{name}":')


def _begins(name: str, start: str) -> Column:
    return F.col("head").contains(f'"{name}":{start}')


def short_numbers(text: Column) -> Column:
    """The same JSON for Spark's parser, which refuses integers of 1000 digits where the hub does not."""
    return F.when(F.octet_length(text) < 1000, text).otherwise(F.regexp_replace(text, "[0-9]{300,}", "0"))


def _is_json(text: Column) -> Column:
    """One JSON value, not null, and nothing after it.

    Spark's parser is lenient. It takes single quotes, which no longer stand for any in `plain`; control characters,
    which our writer escapes; and it stops where the array ends: then the numbers put behind it do not count.
    """
    plain = F.replace(short_numbers(text), F.lit("'"), F.lit("x"))
    one = _elements(plain, ",0") == 2
    whole = ~F.contains(plain, F.lit("]")) | (_elements(plain, ",0,0") == 3)
    return F.coalesce(one & whole, F.lit(False)) & ~text.rlike("[\\x00-\\x1f]") & (text != "null")


def _elements(value: Column, more: str) -> Column:
    return F.json_array_length(F.concat(F.lit("["), value, F.lit(f"{more}]")))
