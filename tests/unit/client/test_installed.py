"""A client without the operator's package has none of its commands, and says what to install."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest
import typer

from millrace_client.commands import cli, installed
from millrace_client.commands.cli import main
from millrace_client.commands.installed import GROUP, OPERATOR


def told() -> None:
    """A command of another package."""
    print("told")


group = typer.Typer()
group.command()(told)
group.command("again")(told)


@pytest.fixture(autouse=True)
def put_together_anew() -> Iterator[None]:
    cli._built.cache_clear()
    yield
    cli._built.cache_clear()


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "installed", lambda: ())


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("name", OPERATOR)
@pytest.mark.parametrize("rest", [[], ["verify"], ["--dry-run", "--stack", "x"], ["--help"]])
def test_a_plain_client_says_what_an_operators_command_needs(
    name: str, rest: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, *rest]) == 2
    assert f"`millrace {name}`" in (error := capsys.readouterr().err)
    assert "millrace-operator" in error


@pytest.mark.usefixtures("plain")
def test_a_plain_client_does_not_offer_an_operators_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    offered = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")}
    assert {"submit", "pull", "follow", "capture", "sync", "stub", "token", "health"} <= offered
    assert not offered & set(OPERATOR)


def test_every_operators_command_is_installed_here() -> None:
    assert {entry.name for entry in installed.installed()} == set(OPERATOR)


@pytest.mark.parametrize("arguments", [["one"], ["many", "again"]])
def test_commands_and_groups_of_other_packages_are_found(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [EntryPoint("one", f"{__name__}:told", GROUP), EntryPoint("many", f"{__name__}:group", GROUP)]
    monkeypatch.setattr(installed, "installed", lambda: entries)
    assert main(arguments) == 0
    assert capsys.readouterr().out == "told\n"
