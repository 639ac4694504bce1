"""`millrace archive` and `millrace retain` without a hub to reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace_client.commands.cli import main


@pytest.mark.parametrize("command", [["archive", "verify"], ["retain", "--dry-run"]])
def test_without_a_hub_the_command_says_how_to_name_one(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    assert "--stack" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["archive", "verify"], ["retain"]])
def test_a_stack_file_of_an_older_hub_is_named(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".local").mkdir()
    (tmp_path / ".local/stack.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    assert "make run" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["archive", "--help"], ["archive", "verify", "--help"], ["retain", "--help"]])
def test_help_is_there(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 0
    assert "Usage" in capsys.readouterr().out
