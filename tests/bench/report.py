"""What a section of the bench hands back, and how it is shown and stored."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

RESULTS = Path(__file__).with_name("results.json")
NOTE = (
    "Counts are exact and come from the embedded emulator; those under contention depend on its timing. "
    "Times are those of the machine of the run: compare them only with each other."
)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    title: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure we hold: what is wanted, what was measured."""

    name: str
    wanted: str
    measured: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Section:
    tables: Sequence[Table]
    figures: Sequence[Figure] = field(default_factory=tuple)

    def as_json(self) -> dict[str, Any]:
        return {
            "figures": [
                {"name": one.name, "wanted": one.wanted, "measured": one.measured, "holds": one.holds}
                for one in self.figures
            ],
            "tables": {table.name: [dict(row) for row in table.rows] for table in self.tables},
        }


def at_most(name: str, limit: float, measured: float, unit: str = "") -> Figure:
    return Figure(name, f"≤ {limit:g}{unit}", f"{measured:g}{unit}", measured <= limit)


def exactly(name: str, wanted: str, measured: str) -> Figure:
    return Figure(name, wanted, measured, wanted == measured)


def show(console: Console, section: Section) -> None:
    for table in section.tables:
        drawn = RichTable(title=table.title, title_justify="left")
        for column in table.rows[0]:
            drawn.add_column(column, justify="left" if isinstance(table.rows[0][column], str) else "right")
        for row in table.rows:
            drawn.add_row(*(_text(value) for value in row.values()))
        console.print(drawn)
    if section.figures:
        drawn = RichTable(title="figures to hold", title_justify="left")
        for column in ("figure", "wanted", "measured", "holds"):
            drawn.add_column(column)
        for one in section.figures:
            drawn.add_row(one.name, one.wanted, one.measured, "yes" if one.holds else "[bold red]NO[/]")
        console.print(drawn)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def document(sections: Mapping[str, Any], order: Sequence[str]) -> dict[str, Any]:
    return {
        "note": NOTE,
        "python": platform.python_version(),
        "sections": {name: sections[name] for name in order if name in sections},
    }


def stored() -> dict[str, Any]:
    """The sections of the last run; a run of one section keeps the others."""
    if not RESULTS.exists():
        return {}
    sections: dict[str, Any] = json.loads(RESULTS.read_text())["sections"]
    return sections


def as_text(results: Mapping[str, Any]) -> str:
    return json.dumps(results, indent=2, ensure_ascii=False) + "\n"
