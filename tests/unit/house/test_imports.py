"""The import rules catch a forbidden import on every floor of every room."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = (
    "layers/common/python/millrace",
    "clients/python/millrace_client",
    "clients/operator/millrace_operator",
    "glue_jobs",
)
PATHS = ("layers/common/python", "clients/python", "clients/operator", ".")
RULES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
HOUSE = next(contract for contract in RULES if contract["type"] == "house")
ROOMS = [row.partition(":")[0] for row in HOUSE["neighbours"]]
FLOORS = HOUSE["floors"]
STRANGERS = {"realtime": "millrace.streams.domain.gap"}
"""For rooms that may use the transcripts: one that they do not know."""
KNOWS_EVERY_ROOM = "operators"
OUTSIDE_THE_HUB = (
    ("clients/python/millrace_client/errors.py", "millrace.runtime.settings", "A client knows the hub's pure floors"),
    ("clients/python/millrace_client/sync/__init__.py", "millrace_client.commands.cli", "In the client, commands use"),
    ("clients/operator/millrace_operator/retain.py", "glue_jobs.columns", "Operators' commands need nothing of Lambda"),
    ("glue_jobs/literal.py", "pydantic", "Jobs import neither Powertools nor pydantic"),
)
"""A file, what must not be imported there, and how the rule's name begins."""
OF_FUNCTIONS = {"millrace", "aws_lambda_powertools", *sys.stdlib_module_names}
"""What a function has on Lambda, of what its handler may name. Here, where all is installed, more would work."""


class Planted(NamedTuple):
    module: str
    imported: str


def floor_of(room: Path, floor: str) -> Path | None:
    """A module on this floor, if the room has the floor: the module itself, or one of the package."""
    if (room / f"{floor}.py").exists():
        return room / f"{floor}.py"
    return next(iter(sorted(path for path in (room / floor).rglob("*.py") if path.name != "__init__.py")), None)


def forbidden(package: Path) -> Iterator[tuple[Path, str]]:
    """On each floor of each room: the floor above, a package it has no use for, and a room it does not know."""
    for room in ROOMS:
        stranger = STRANGERS.get(room, "millrace.realtime.domain.transcript")
        for height, floor in enumerate(FLOORS):
            path = floor_of(package / room, floor)
            if path is None:
                continue
            if floor != "wiring":
                above = "millrace.runtime.settings" if FLOORS[height + 1] == "runtime" else "millrace.ledger.wiring"
                yield path, above
            if floor not in ("adapters", "runtime"):
                yield path, "boto3"
            if room != KNOWS_EVERY_ROOM:
                yield path, stranger


@pytest.fixture(scope="module")
def lint(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Planted], str]:
    """Every forbidden import planted in a copy of the sources, and what the linter says about that copy."""
    copy = copied(tmp_path_factory.mktemp("house"))
    base = copy / PATHS[0]
    planted = []
    for path, imported in list(forbidden(base / "millrace")):
        path.write_text(f"{path.read_text()}\nimport {imported}  # planted\n")
        planted.append(Planted(".".join(path.relative_to(base).with_suffix("").parts), imported))
    (base / "millrace/ledger/attic.py").write_text("import json\n")
    for room, imported in (("ledger", "millrace_client"), ("lake", "glue_jobs")):
        path = base / f"millrace/{room}/wiring.py"
        path.write_text(f"{path.read_text()}\nimport {imported}  # planted\n")
    return planted, lint_output(copy)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the linter says when only the rules outside the hub are broken, line by line."""
    copy = copied(tmp_path_factory.mktemp("outside"))
    for file, imported, _ in OUTSIDE_THE_HUB:
        path = copy / file
        path.write_text(f"{path.read_text()}\nimport {imported}  # planted\n")
    return lint_output(copy).splitlines()


def copied(copy: Path) -> Path:
    for source in (*SOURCES, "infra"):
        shutil.copytree(ROOT / source, copy / source, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def lint_output(folder: Path) -> str:
    paths = [str(folder / path) for path in PATHS]
    code = f"import sys; sys.path[:0] = {paths!r}; from importlinter import cli; cli.lint_imports_command()"
    command = [sys.executable, "-c", code, "--no-cache"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={"COLUMNS": "400"})
    assert run.returncode == 1, run.stdout + run.stderr
    return run.stdout


def test_a_forbidden_import_on_any_floor_of_any_room_fails_the_linter(lint: tuple[list[Planted], str]) -> None:
    planted, output = lint
    missed = [one for one in planted if f"{one.module} -> {one.imported}" not in output]
    assert not missed
    assert {one.module.split(".")[1] for one in planted} == set(ROOMS)


def test_a_module_that_is_on_no_floor_fails_the_linter(lint: tuple[list[Planted], str]) -> None:
    assert "millrace.ledger.attic is on no floor of a known room" in lint[1]


def test_the_hub_may_import_neither_its_clients_nor_its_jobs(lint: tuple[list[Planted], str]) -> None:
    assert "The hub never imports its clients or its jobs BROKEN" in lint[1]


@pytest.mark.parametrize("rule", [rule for _, _, rule in OUTSIDE_THE_HUB])
def test_a_forbidden_import_outside_the_hub_fails_the_linter(outside: list[str], rule: str) -> None:
    assert [line for line in outside if line.startswith(rule) and line.endswith("BROKEN")]


def test_nothing_else_is_broken_by_them(outside: list[str]) -> None:
    assert f"Contracts: {len(RULES) - len(OUTSIDE_THE_HUB)} kept, {len(OUTSIDE_THE_HUB)} broken." in outside


def imported_by(source: str) -> set[str]:
    """The packages that a module names, wherever in it."""
    nodes = list(ast.walk(ast.parse(source)))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    used = {"." * node.level + (node.module or "") for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] or "." for name in plain | used}


@pytest.mark.parametrize("handler", sorted((ROOT / "functions").glob("*/*.py")), ids=lambda path: path.parent.name)
def test_a_function_imports_nothing_but_the_hub(handler: Path) -> None:
    assert imported_by(handler.read_text()) <= OF_FUNCTIONS


@pytest.mark.parametrize("stranger", ["millrace_client", "millrace_operator", "glue_jobs", "local", "tests", "."])
def test_another_import_of_a_function_is_found(stranger: str) -> None:
    planted = "from . import x" if stranger == "." else f"def handler():\n    from {stranger}.thing import x\n"
    assert imported_by(planted) - OF_FUNCTIONS == {stranger}


def test_every_room_is_listed_and_every_listed_room_exists() -> None:
    folders = {path.name for path in (ROOT / SOURCES[0]).iterdir() if (path / "__init__.py").exists()}
    assert folders == {*ROOMS, "runtime"}
