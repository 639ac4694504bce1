"""C7: quarantined events can be listed, shown, repaired and driven again, and doing so twice changes nothing."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from millrace.lake.adapters.directory_objects import DirectoryObjects
from millrace.lake.application.editions import Editions
from millrace.lake.application.quarantine import ListQuarantine, Redrive, ShowQuarantined
from millrace.lake.domain.archive import FOLDER, EventWriter, read_lines
from millrace.lake.domain.edition import QUARANTINE, Edition, File, Segment
from millrace.ledger.domain.errors import BadRequest, NotFound
from millrace_client.commands import cli, output
from tests.unit.lake.archiving import Died

LINE: dict[str, Any] = {
    "committed_at": 1_770_000_000_000,
    "ledger": "catalog#acme#orders",
    "tenant": "acme",
    "partitions": [],
    "event_type": "order.placed",
    "event_version": 9,
    "idempotency_key": "k1",
    "occurred_at": "2026-02-01T10:00:00Z",
    "source": "tests",
    "sequence_position": 4,
    "payload": {"n": 1},
}


class Store:
    """A store whose edition has an unknown version, a malformed line, a long line and an unreadable object."""

    def __init__(self, root: Path, line: Mapping[str, Any] = LINE) -> None:
        self.root = root
        self.objects = DirectoryObjects(root)
        writer = EventWriter()
        writer.add_line(line)
        self.origin = writer.finish()
        self.objects.put(self.origin.name, self.origin.data)
        text = gzip.decompress(self.origin.data).decode().strip()
        entries = [
            {**self.entry("unknown", "unknown_version", text), "event_type": "order.placed", "event_version": 9},
            {**self.entry("broken", "malformed", text.replace('"tests"', "5")), "field": "source"},
            {key: value for key, value in self.entry("long", "too_large", text).items() if key != "line"},
            {"id": "object", "reason": "corrupt_object", "object": "ledger/corrupt.jsonl.gz"},
        ]
        entries.append(entries[0])
        data = gzip.compress("".join(json.dumps(one) + "\n" for one in entries).encode())
        self.objects.put("lake/runs/r1/quarantine/one.gz", data)
        editions = Editions(self.objects)
        segment = Segment("r1", len(entries), (File("lake/runs/r1/quarantine/one.gz", len(data)),))
        assert editions.publish(editions.current(), Edition(1, "r1").having(QUARANTINE, [segment]))

    def entry(self, id_: str, reason: str, line: str) -> dict[str, Any]:
        digest = hashlib.sha256(line.encode()).hexdigest()
        return {"id": id_, "reason": reason, "object": self.origin.name, "line": line, "sha256": digest, "bytes": 5}

    def archive(self) -> list[str]:
        return [one.name for one in self.objects.list(FOLDER)]


class DiesAfterThePut(DirectoryObjects):
    def put(self, name: str, data: bytes) -> bool:
        super().put(name, data)
        raise Died


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_entries_are_listed_once_with_reason_and_origin(store: Store) -> None:
    listed = list(ListQuarantine(store.objects)())
    assert [(one.id, one.reason) for one in listed] == [
        ("unknown", "unknown_version"),
        ("broken", "malformed"),
        ("long", "too_large"),
        ("object", "corrupt_object"),
    ]
    assert listed[0].object == store.origin.name
    assert {one.redriven for one in listed} == {None}


def test_a_long_line_is_shown_from_its_object(store: Store) -> None:
    line = ShowQuarantined(store.objects)("long").line
    assert line
    assert json.loads(line) == LINE
    with pytest.raises(NotFound):
        ShowQuarantined(store.objects)("nobody")


def test_an_event_is_driven_again_once_under_another_name(store: Store) -> None:
    done = Redrive(store.objects)(["unknown", "unknown"])
    assert set(store.archive()) == {store.origin.name, done["unknown"]}
    found = store.objects.get(done["unknown"])
    assert found
    assert list(read_lines(found.data)) == [LINE]
    before = store.archive()
    assert Redrive(store.objects)(["unknown"]) == done
    assert store.archive() == before
    assert {one.id: one.redriven for one in ListQuarantine(store.objects)()}["unknown"] == done["unknown"]


def test_a_line_that_is_still_wrong_is_refused_and_nothing_is_written(store: Store) -> None:
    before = store.archive()
    with pytest.raises(BadRequest, match="broken") as refused:
        Redrive(store.objects)(["unknown", "broken"])
    assert (refused.value.details["entry"], refused.value.details["field"]) == ("broken", "source")
    with pytest.raises(BadRequest, match="cannot be read"):
        Redrive(store.objects)(["object"])
    with pytest.raises(NotFound):
        Redrive(store.objects)(["nobody"])
    assert store.archive() == before


def test_a_repaired_line_and_the_lines_of_a_lost_object_go_in(store: Store) -> None:
    lines = [{**LINE, "idempotency_key": key, "sequence_position": n} for n, key in enumerate(("a", "b"), 1)]
    done = Redrive(store.objects)(["broken", "object"], {"broken": [LINE], "object": lines})
    found = store.objects.get(done["object"])
    assert found
    assert [line["idempotency_key"] for line in read_lines(found.data)] == ["a", "b", "k1"]


def test_another_repair_after_one_that_died_is_another_object(store: Store) -> None:
    """C7: what is told to be driven again is what the archive holds."""
    with pytest.raises(Died):
        Redrive(DiesAfterThePut(store.root))(["broken"], {"broken": [{**LINE, "event_type": "wrong"}]})
    (died,) = set(store.archive()) - {store.origin.name}
    assert ShowQuarantined(store.objects)("broken").redriven is None
    done = Redrive(store.objects)(["broken"], {"broken": [{**LINE, "event_type": "right"}]})
    assert done["broken"] != died
    found = store.objects.get(done["broken"])
    assert found
    assert [line["event_type"] for line in read_lines(found.data)] == ["right"]


def test_the_same_repair_after_one_that_died_is_the_same_object(store: Store) -> None:
    """C7."""
    with pytest.raises(Died):
        Redrive(DiesAfterThePut(store.root))(["broken"], {"broken": [LINE]})
    (died,) = set(store.archive()) - {store.origin.name}
    assert Redrive(store.objects)(["broken"], {"broken": [LINE]}) == {"broken": died}
    assert set(store.archive()) == {store.origin.name, died}


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\u0085", "\x1c", "\x0c", "\r"])
def test_a_line_that_was_shown_is_one_line_for_repair(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], character: str
) -> None:
    """C7: whatever its texts hold."""
    line = {**LINE, "payload": {"text": f"a{character}b"}}
    store = Store(tmp_path, line)
    where = ["--store", str(store.root)]
    assert cli.main(["quarantine", "show", "unknown", "--line", *where]) == 0
    fixed = tmp_path / "fixed.jsonl"
    fixed.write_bytes(capsys.readouterr().out.encode())
    assert cli.main(["quarantine", "repair", "unknown", "--file", str(fixed), *where, "--json"]) == 0
    found = store.objects.get(json.loads(capsys.readouterr().out)["redriven"]["unknown"])
    assert found
    assert list(read_lines(found.data)) == [line]


def test_an_id_is_shown_whole_in_a_narrow_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "out", Console(width=60, highlight=False))
    store = Store(tmp_path)
    assert cli.main(["quarantine", "list", "--store", str(store.root)]) == 0
    told = capsys.readouterr().out
    assert all(f" {one.id} " in told for one in ListQuarantine(store.objects)())
    assert max(map(len, told.splitlines())) <= 60


def test_the_command_lists_shows_repairs_and_drives_again(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--store", str(store.root)]
    assert cli.main(["quarantine", "list", *where, "--json"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["id"] for one in listed] == ["unknown", "broken", "long", "object"]
    assert cli.main(["quarantine", "show", "broken", "--line", *where]) == 0
    fixed = tmp_path / "fixed.jsonl"
    fixed.write_text(json.dumps({**json.loads(capsys.readouterr().out), "source": "tests"}))
    assert cli.main(["quarantine", "redrive", "broken", *where]) == 1
    assert "source" not in capsys.readouterr().out
    assert cli.main(["quarantine", "repair", "broken", "--file", str(fixed), *where]) == 0
    assert cli.main(["quarantine", "redrive", "--reason", "unknown_version", *where, "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out.splitlines()[-1])["redriven"]) == {"unknown"}
    assert cli.main(["quarantine", "list", *where]) == 0
    assert "2 in quarantine" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["redrive"], ["redrive", "x", "--reason", "y"], ["repair", "x", "--file", "no"]])
def test_a_command_that_makes_no_sense_is_a_usage_error(store: Store, arguments: list[str]) -> None:
    assert cli.main(["quarantine", *arguments, "--store", str(store.root)]) == 2


@pytest.mark.parametrize("text", ["", "[]", "{", "5", "[" * 100_000], ids=["", "[]", "{", "5", "deep"])
def test_a_repair_is_one_object_a_line(store: Store, tmp_path: Path, text: str) -> None:
    file = tmp_path / "fixed"
    file.write_text(text)
    assert cli.main(["quarantine", "repair", "broken", "--file", str(file), "--store", str(store.root)]) == 2


def test_an_address_that_is_no_store_is_refused() -> None:
    assert cli.main(["quarantine", "list", "--store", "ftp://x"]) == 1
