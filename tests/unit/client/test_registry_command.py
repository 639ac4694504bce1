"""C5: `millrace registry` shows and sets what the tables take; a registry that a run could not use changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from millrace.lake.adapters.memory.objects import MemoryObjects
from millrace.lake.application.registries import current_registry, put_registry
from millrace.lake.domain.registry import Registry
from millrace.ledger.domain.errors import Unavailable
from millrace_client.commands import cli

GOOD = {"types": {"order.placed": {"versions": {"1": {}, "2": {"channel": "web"}}, "policy": "fallback"}}}


@pytest.fixture
def where(tmp_path: Path) -> list[str]:
    return ["--store", str(tmp_path / "store")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "registry.json"


def test_a_registry_is_put_in_place_of_the_last_and_shown_as_it_was_put(
    where: list[str], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["registry", "show", *where]) == 0
    told = capsys.readouterr()
    assert (json.loads(told.out), "no registry yet" in told.err) == ({}, True)
    for content, types in (({"policy": "reject"}, 0), (GOOD, 1)):
        file.write_text(json.dumps(content))
        assert cli.main(["registry", "put", str(file), "--json", *where]) == 0
        assert json.loads(capsys.readouterr().out)["types"] == types
    assert cli.main(["registry", "show", *where]) == 0
    assert capsys.readouterr().out.strip() == file.read_text()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ('{"types": {"a": {"versions": {"one": {}}}}}', "types.a.versions"),
        ('{"types": {"a": {"versions": {}}}}', "types.a.versions"),
        ('{"tipes": {}}', "tipes"),
        ('{"policy": "drop"}', "policy"),
    ],
)
def test_a_bad_registry_is_refused_with_the_field_and_the_last_one_stays(
    text: str, told: str, where: list[str], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(json.dumps(GOOD))
    assert cli.main(["registry", "put", str(file), *where]) == 0
    file.write_text(text)
    capsys.readouterr()
    assert cli.main(["registry", "put", str(file), *where]) == 1
    err = capsys.readouterr().err
    assert told in err
    assert "Traceback" not in err
    assert cli.main(["registry", "show", *where]) == 0
    assert json.loads(capsys.readouterr().out) == GOOD


def test_a_file_that_is_not_there_is_told(where: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["registry", "put", "nowhere.json", *where]) == 2
    assert "nowhere.json cannot be read" in capsys.readouterr().err


class Overtaken(MemoryObjects):
    """Another registry is put right before ours."""

    def swap(self, name: str, data: bytes, tag: str) -> bool:
        self.stored[name] = b"{}"
        return super().swap(name, data, tag)


def test_of_two_that_put_at_once_one_is_told_to_look_again() -> None:
    objects = Overtaken()
    put_registry(objects, json.dumps(GOOD).encode())
    with pytest.raises(Unavailable, match="Somebody else"):
        put_registry(objects, b'{"policy": "reject"}')
    assert current_registry(objects) == Registry.parse(b"{}")
