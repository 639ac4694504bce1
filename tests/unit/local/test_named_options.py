"""A message that asks for an option names one that the command has."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from local.stack import ROOT
from millrace_client.commands import cli

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z_-]*")
ANOTHER = re.compile(r"`millrace ([a-z ]+?) (?=[^a-z])([^`]*)`")
MAKE = re.compile(r"make ([a-z-]+)((?: [A-Z]+=\S+)*)")
NOT_ENDING = {"stub"}
VALUES = {"--payload": "{}", "--kind": "events"}


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words that call it."""
    children: dict[str, Any] = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name, one in children.items():
        yield from leaves(one, (*path, name))


COMMANDS = dict(leaves(typer.main.get_command(cli.command())))


def options(command: Any) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts if name.startswith("--")} | {"--help"}


def module_of(command: Any) -> str:
    return str(command.callback.__module__)


def texts(source: Path) -> Iterator[str]:
    """Every string of a module but its docstrings, with `x` where something is filled in."""
    tree = ast.parse(source.read_text())
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (bare | inside):
            yield node.value


@pytest.mark.parametrize("module", sorted({module_of(command) for command in COMMANDS.values()}))
def test_the_texts_of_a_command_name_its_own_options(module: str) -> None:
    own = set[str]().union(*(options(command) for command in COMMANDS.values() if module_of(command) == module))
    source = sys.modules[module].__file__
    assert source
    every = list(texts(Path(source)))
    for words, rest in [found for text in every for found in ANOTHER.findall(text)]:
        assert set(OPTION.findall(rest)) <= options(COMMANDS[tuple(words.split())])
    named = {option for text in every for option in OPTION.findall(ANOTHER.sub("", text))}
    assert named <= own | {"--version"}


@pytest.mark.parametrize("path", [path for path in COMMANDS if path[0] not in NOT_ENDING], ids=" ".join)
def test_without_a_hub_a_command_asks_for_what_it_takes(
    path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("URL", "TOKEN", "WS_URL", "STACK", "STORE", "JOURNAL"):
        monkeypatch.delenv(f"MILLRACE_{name}", raising=False)
    command = COMMANDS[path]
    given = [
        text
        for parameter in command.params
        if parameter.required
        for text in (
            [parameter.opts[0], VALUES.get(parameter.opts[0], "x")] if parameter.param_type_name == "option" else ["x"]
        )
    ]
    cli.main([*path, *given])
    assert set(OPTION.findall(capsys.readouterr().err)) <= options(command)


def recipe(target: str) -> str:
    lines = (ROOT / "Makefile").read_text().split(f"\n{target}:", 1)
    assert len(lines) == 2, f"there is no make {target}"
    return lines[1].split("\n.PHONY", 1)[0]


@pytest.mark.parametrize("source", sorted((ROOT / "local").glob("*.py")), ids=lambda path: path.name)
def test_a_make_command_in_a_message_is_one(source: Path) -> None:
    for text in texts(source):
        for target, settings in MAKE.findall(text):
            for name in re.findall(r"[A-Z]+(?==)", settings):
                assert f"$({name})" in recipe(target), text
            recipe(target)


@pytest.mark.parametrize("source", sorted((ROOT / "local").glob("*.py")), ids=lambda path: path.name)
def test_an_option_in_a_message_is_one_of_its_module(source: Path) -> None:
    every = list(texts(source))
    defined = {text for text in every if OPTION.fullmatch(text)}
    filled_in = "--x"
    assert {option for text in every for option in OPTION.findall(text)} <= defined | {"--keep", filled_in}
