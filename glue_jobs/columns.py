"""The columns of every table (C9), each stated once: name, type, meaning, and where its value comes from.

Spark's schemas and the archive line's, the rows of events, the page docs/tables.md and its statements for Athena are
made from this file. A new column of `events` is one entry here and `make generated`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from millrace.lake.domain import edition as names


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column. `kind` is its type in Spark and in Athena.

    `line` is the type of the archive line's member of the same name, where there is one. `made` is the SQL expression
    over a parsed line that makes the value, where it is not the parsed column of the same name.
    """

    name: str
    kind: str
    meaning: str = ""
    line: str | None = None
    made: str | None = None


LEDGER = TableColumn("ledger", "string", "contract, tenant and scope, such as `sync#acme#demo`", line="string")
TENANT = TableColumn("tenant", "string", "the tenant", line="string")
CONTRACT = TableColumn("contract", "string", "the first part of the ledger's name")

TABLES: Mapping[str, Sequence[TableColumn]] = {
    names.EVENTS: (
        LEDGER,
        CONTRACT,
        TENANT,
        TableColumn("sequence_position", "bigint", "its place in the ledger", line="bigint"),
        TableColumn(
            "event_type", "string", "the type, with its contract in front unless it is the catalog's", line="string"
        ),
        TableColumn("event_version", "bigint", "the version of the type", line="bigint"),
        TableColumn("idempotency_key", "string", "its id in its contract", line="string"),
        TableColumn("occurred_at", "timestamp", "when it happened, by the sender's clock", line="string"),
        TableColumn(
            "committed_at", "timestamp", "when the hub committed it", "bigint", made="timestamp_millis(committed_at)"
        ),
        TableColumn("source", "string", "what sent it", line="string"),
        TableColumn("trace_id", "string", "the sender's trace", line="string"),
        TableColumn("client_id", "string", "the client that committed it", line="string"),
        TableColumn("partitions", "array<string>", "the partitions it names", line="array<string>"),
        TableColumn("payload", "string", "JSON text as stored"),
        TableColumn("filled", "boolean", "whether defaults stand in for an unknown version"),
        TableColumn("archive_object", "string", "the archive object it was read from", made="object"),
    ),
    names.TRANSCRIPTS: (
        LEDGER,
        TENANT,
        TableColumn("utterance_id", "string", "the utterance"),
        TableColumn("speaker", "string", "who speaks"),
        TableColumn("text", "string", "what was said"),
        TableColumn("start_ms", "bigint", "where it begins in the call"),
        TableColumn("end_ms", "bigint", "where it ends"),
        TableColumn("final", "boolean", "whether it is final"),
        TableColumn("event_id", "string", "the event that tells it best (R8)"),
        TableColumn("sequence_position", "bigint", "that event's place in the ledger"),
        TableColumn("ts", "string", "that event's time as sent"),
        TableColumn("rank", "string", "of two rows of one utterance the greater counts"),
    ),
    names.STATISTICS: (
        LEDGER,
        CONTRACT,
        TENANT,
        TableColumn("day", "date", "the UTC day of commit"),
        TableColumn("events", "bigint", "how many were committed"),
        TableColumn("payload_bytes", "bigint", "bytes of their payloads"),
        TableColumn("first_position", "bigint", "the lowest position of the day"),
        TableColumn("last_position", "bigint", "the highest"),
        TableColumn("first_committed_at", "timestamp", "the earliest commit of the day"),
        TableColumn("last_committed_at", "timestamp", "the latest"),
    ),
    # `drawer` puts a ledger's keys side by side; files of an older version do not have it.
    names.KEYS: (TableColumn("key", "binary"), TableColumn("drawer", "int")),
    names.PRUNED: (TableColumn("ledger", "string"), TableColumn("first", "bigint"), TableColumn("last", "bigint")),
}
SCHEMAS: Mapping[str, str] = {
    table: ", ".join(f"{column.name} {column.kind}" for column in stated) for table, stated in TABLES.items()
}


def columns(table: str) -> list[str]:
    return [column.name for column in TABLES[table]]
