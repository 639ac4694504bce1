"""How the commands write: results to standard output, everything about them to standard error."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

out = Console(highlight=False)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One line, so that many can be read one by one."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], whole: Collection[str] = ()) -> int:
    """Plain columns whose text folds, so that nothing is cut off in a narrow terminal; times and the columns of `whole`
    are short enough to stay on their line. Answers how many rows."""
    made = (Column(name, overflow="fold", no_wrap=name in whole or name.endswith("(UTC)")) for name in columns)
    table = Table(*made, box=None, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*(escape("" if cell is None else str(cell)) for cell in row))
    if table.row_count:
        out.print(table)
    return table.row_count


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """A name and its value on each line; what is None or empty is left out."""
    table = Table(Column(no_wrap=True), Column(overflow="fold"), box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in fields:
        if value not in (None, "", [], {}):
            table.add_row(escape(name), escape(str(value)))
    out.print(table)


def utc(ms: int | None) -> str:
    """A time as people read it; in UTC, as the hub's logs are."""
    if ms is None:
        return ""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def short(value: Any, most: int = 120) -> str:
    """JSON on one line, cut where it gets long; `--json` shows all of it."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def progress(text: str) -> None:
    err.print(text, style="dim", markup=False)
