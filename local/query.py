"""`make query`: SQL over the tables of the running hub, with DuckDB; a statement as argument, or a prompt."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import duckdb

from glue_jobs.columns import TABLES
from millrace.lake.domain.edition import PUBLISHED, STATISTICS, TRANSCRIPTS, Edition
from millrace_client.errors import ClientError
from millrace_operator.store_access import translated
from millrace_operator.tables import copied

COPY = Path(".local") / "tables"
ONE_ROW_EACH = {
    TRANSCRIPTS: "SELECT * FROM {files} "
    "QUALIFY row_number() OVER (PARTITION BY ledger, utterance_id ORDER BY rank DESC) = 1",
    STATISTICS: "SELECT ledger, contract, tenant, day, sum(events)::BIGINT AS events, "
    "sum(payload_bytes)::BIGINT AS payload_bytes, min(first_position) AS first_position, "
    "max(last_position) AS last_position, min(first_committed_at) AS first_committed_at, "
    "max(last_committed_at) AS last_committed_at FROM {files} GROUP BY ledger, contract, tenant, day",
}
"""An utterance and a day may be in several segments; a reader of these views need not know."""


def views(database: duckdb.DuckDBPyConnection, edition: Edition, folder: Path) -> None:
    """One view for each table; one without files is empty."""
    for table in PUBLISHED:
        names = edition.files(table)
        listed = ", ".join("'" + str(folder / name).replace("'", "''") + "'" for name in names)
        files = f"read_parquet([{listed}])" if names else f"({_no_rows(table)})"
        database.execute(
            f"CREATE VIEW {table} AS {ONE_ROW_EACH.get(table, 'SELECT * FROM {files}').format(files=files)}"
        )


def _no_rows(table: str) -> str:
    kinds = {column.name: column.kind.replace("array<string>", "varchar[]") for column in TABLES[table]}
    return "SELECT " + ", ".join(f"NULL::{kind} AS {name}" for name, kind in kinds.items()) + " WHERE false"


def answer(database: duckdb.DuckDBPyConnection, statement: str) -> bool:
    """Print what the statement gives; False if it cannot be run."""
    try:
        rows = database.sql(statement)
        if rows is not None:
            rows.show(max_width=120)
    except duckdb.Error as error:
        print(error, file=sys.stderr)
        return False
    return True


def prompt(database: duckdb.DuckDBPyConnection) -> None:
    import readline  # noqa: F401, PLC0415 - gives `input` a history and keys to move in it

    print("Tables: " + ", ".join(PUBLISHED) + ". A statement ends with ; and Ctrl-D ends the prompt.")
    statement = ""
    while True:
        try:
            statement += input("   … " if statement else "sql> ") + "\n"
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            statement = ""
            print()
            continue
        if statement.rstrip().endswith(";"):
            answer(database, statement)
            statement = ""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make query", description=__doc__)
    parser.add_argument("statement", nargs="*", help="SQL; none: a prompt")
    parser.add_argument("--store", help="s3://bucket/prefix or a directory; default: the local hub's")
    given = parser.parse_args(argv)
    try:
        with translated():
            edition = copied(given.store, COPY)
    except ClientError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if edition.number == 0:
        print("There are no tables yet: `make compact` makes them.", file=sys.stderr)
        return 1
    with duckdb.connect() as database:
        views(database, edition, COPY)
        if given.statement:
            return 0 if answer(database, " ".join(given.statement)) else 1
        prompt(database)
    return 0


if __name__ == "__main__":
    sys.exit(main())
