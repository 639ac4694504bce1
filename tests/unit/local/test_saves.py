"""Saves: whole or not there, and only for the stack they belong to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from local import saves, told

PORT = 4600


def saved(home: Path, content: str = "x", port: int = PORT) -> saves.Save:
    folder = saves.draft(home)
    (folder / saves.STATE).mkdir()
    (folder / saves.STATE / "dynamodb.json").write_text(content)
    (folder / saves.OBJECTS).mkdir()
    return saves.finish(home, port)


def test_the_newest_save_counts_and_older_ones_go(tmp_path: Path) -> None:
    assert saves.newest(tmp_path) is None
    for number in range(1, 12):
        assert saved(tmp_path, str(number)).number == number
    assert saves.newest(tmp_path) == saves.to_continue(tmp_path, PORT)
    saves.drop_older(tmp_path)
    assert [folder.name for folder in (tmp_path / saves.FOLDER).iterdir()] == ["11"]


def test_a_save_that_was_not_finished_is_none(tmp_path: Path) -> None:
    first = saved(tmp_path)
    (saves.draft(tmp_path) / saves.STATE).mkdir()
    assert saves.newest(tmp_path) == first
    saves.drop_older(tmp_path)
    assert saves.newest(tmp_path) == first


@pytest.mark.parametrize("manifest", ["", "{", "[]", '{"port": 1}'])
def test_a_save_that_cannot_be_read_gives_way_to_the_one_before(tmp_path: Path, manifest: str) -> None:
    first, second = saved(tmp_path), saved(tmp_path)
    (second.folder / saves.MANIFEST).write_text(manifest)
    assert saves.newest(tmp_path) == first


def test_what_is_unpacked_can_change_without_the_save(tmp_path: Path) -> None:
    save = saved(tmp_path, "before")
    saves.unpack(save, tmp_path / "work")
    working = tmp_path / "work" / saves.STATE / "dynamodb.json"
    assert working.read_text() == "before"
    working.write_text("after")
    assert (save.folder / saves.STATE / "dynamodb.json").read_text() == "before"


def test_a_save_belongs_to_its_port_and_to_its_emulator(tmp_path: Path) -> None:
    save = saved(tmp_path)
    with pytest.raises(saves.CannotContinue, match=f"make run KEEP=1 PORT={PORT}"):
        saves.to_continue(tmp_path, PORT + 1)
    manifest = save.folder / saves.MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"emulator": "0.1"}))
    with pytest.raises(saves.CannotContinue, match=r"0\.1.*\n.*KEEP=new"):
        saves.to_continue(tmp_path, PORT)


def test_others_cannot_read_a_save(tmp_path: Path) -> None:
    assert saved(tmp_path).folder.stat().st_mode & 0o077 == 0


def test_what_is_said_of_the_data_tells_a_stop_from_a_crash(tmp_path: Path) -> None:
    save = saved(tmp_path)
    assert "is gone" in told.after_a_stop(None)
    assert "is kept" in told.after_a_stop(save)
    assert "is gone" in told.after_a_crash(None)
    assert "accepted after that is lost" in told.after_a_crash(save)
    assert "goes on" in told.beginning(save, continued=True)
    assert "begins empty" in told.beginning(save, continued=False)
