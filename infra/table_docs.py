"""Makes the columns and the Athena statements of docs/tables.md: `make generated`. The rest is written by hand."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from glue_jobs.columns import TABLES
from millrace.lake.domain.edition import PUBLISHED

PAGE = Path(__file__).parents[1] / "docs/tables.md"
ATHENA = """\
CREATE EXTERNAL TABLE millrace_{table} (
{columns})
ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe'
STORED AS INPUTFORMAT 'org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat'
OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat'
LOCATION 's3://BUCKET/lake/athena/{table}/';
"""


def columns(table: str) -> str:
    rows = [f"| `{column.name}` | `{column.kind}` | {column.meaning} |" for column in TABLES[table]]
    return "\n".join([f"| column of `{table}` | type | |", "|---|---|---|", *rows, ""])


def statement(table: str) -> str:
    listed = ", ".join(f"{column.name}~{column.kind}" for column in TABLES[table])
    wrapped = textwrap.fill(listed, 118, initial_indent="  ", subsequent_indent="  ")
    return ATHENA.format(table=table, columns=wrapped.replace("~", " "))


PARTS = {
    "columns": "\n" + "\n".join(map(columns, PUBLISHED)) + "\n",
    "athena": "\n```sql\n" + "\n".join(map(statement, PUBLISHED)) + "```\n\n",
}
"""What stands on the page between `<!-- NAME: make generated -->` and `<!-- end -->`."""

_MARKED = re.compile(r"(<!-- (\w+): make generated -->\n).*?(<!-- end -->\n)", re.DOTALL)


def page() -> str:
    return _MARKED.sub(lambda found: found[1] + PARTS[found[2]] + found[3], PAGE.read_text())


def files() -> dict[Path, str]:
    return {PAGE: page()}
