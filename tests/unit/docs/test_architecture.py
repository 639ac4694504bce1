"""docs/architecture.md is true: its rooms and floors are those of pyproject.toml, and what it names exists."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.unit.docs.pages import ROOT, section, spans, tables

PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = ROOT / "layers/common/python/millrace"


def house() -> dict[str, Any]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (found,) = (contract for contract in contracts if contract["type"] == "house")
    return dict(found)


def listed(lines: list[str]) -> dict[str, set[str]]:
    return {name: set(rest.split()) for name, _, rest in (line.partition(":") for line in lines)}


def file_of(path: str) -> Path | None:
    return next((base / path for base in (ROOT, PACKAGE) if (base / path).exists()), None)


@cache
def symbols(path: Path) -> set[str]:
    """What a module defines at its top level."""
    found = set[str]()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def named() -> list[str]:
    """Whatever on the page looks like a path, alone or with a symbol."""
    path = re.compile(r"[\w./-]+(/|\.py|\.yaml|\.toml)(: \w+)?|[\w-]+(/[\w.-]+)+(: \w+)?")
    return sorted({span for span in spans(PAGE.read_text()) if path.fullmatch(span)})


def test_the_rooms_and_their_neighbours_are_those_of_the_import_rules() -> None:
    rooms, _ = tables(section(PAGE, "The rooms"))
    assert {spans(room)[0]: set(spans(neighbours)) for room, _, neighbours in rooms} == listed(house()["neighbours"])


def test_every_room_of_the_package_is_on_the_page() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert folders == {*listed(house()["neighbours"]), "runtime"}
    assert folders <= set(spans(section(PAGE, "The rooms")))


def test_the_floors_are_those_of_the_import_rules_from_the_ground_up() -> None:
    (table,) = tables(section(PAGE, "The floors"))
    assert [spans(row[0])[0] for row in table] == house()["floors"]


def test_a_floor_that_is_said_to_use_the_standard_library_may_use_nothing_else() -> None:
    outside = listed(house()["outside"])
    (table,) = tables(section(PAGE, "The floors"))
    for row in table:
        floor = spans(row[0])[0]
        assert (row[2] == "the standard library") == (floor not in outside), floor
        assert (row[2] == "any package") == (outside.get(floor) == {"*"}), floor


@pytest.mark.parametrize("name", named())
def test_every_file_and_every_symbol_that_the_page_names_exists(name: str) -> None:
    path, _, symbol = name.partition(": ")
    file = file_of(path)
    assert file is not None, f"there is no {path}"
    if symbol:
        assert symbol in symbols(file), f"{path} has no {symbol}"


def test_the_event_is_followed_through_every_part_of_the_hub() -> None:
    path = {name.partition(": ")[0] for name in spans(section(PAGE, "One event, file by file")) if ": " in name}
    for function in ("submit", "fan_out", "index", "archive", "deliver", "sync", "sweep"):
        assert f"functions/{function}/app.py" in path
    assert {"ledger/application/commit.py", "glue_jobs/compact/run.py"} <= path
    assert len(path) > 30
