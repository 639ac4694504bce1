"""`millrace archive`, `millrace rebuild` and `millrace retain` without a hub to reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace_client.commands.cli import main
from millrace_client.errors import Usage
from millrace_operator.place_file import PlaceFile


@pytest.mark.parametrize("command", [["archive", "verify"], ["rebuild", "--dry-run"], ["retain", "--dry-run"]])
def test_without_a_hub_the_command_says_how_to_name_one(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    assert "--stack" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["archive", "verify"], ["rebuild"], ["retain"]])
def test_a_stack_file_of_an_older_hub_is_named(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".local").mkdir()
    (tmp_path / ".local/stack.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    assert "make run" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["archive", "--help"],
        ["archive", "verify", "--help"],
        ["rebuild", "--help"],
        ["retain", "--help"],
        ["tables", "copy", "--help"],
        ["tables", "verify", "--help"],
    ],
)
def test_help_is_there(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 0
    assert "Usage" in capsys.readouterr().out


def test_a_place_is_kept_for_its_own_tables_alone(tmp_path: Path) -> None:
    """A table that was made again has nothing of what was written into the one before."""
    file = tmp_path / "place.json"
    mine = PlaceFile(file, "log:1 state:1")
    assert mine.load() is None
    mine.save({"object": "x"})
    assert mine.load() == {"object": "x"}
    assert PlaceFile(file, "log:1 state:2").load() is None
    mine.clear()
    assert list(tmp_path.iterdir()) == []
    mine.clear()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"format": 1}'])
def test_a_file_that_is_no_place_is_named_and_left_alone(content: str, tmp_path: Path) -> None:
    file = tmp_path / "place.json"
    file.write_text(content)
    with pytest.raises(Usage, match=r"place\.json"):
        PlaceFile(file, "tables").load()
    assert file.read_text() == content
