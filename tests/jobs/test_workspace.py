"""Spark on staged files, and the sweeping of files that nothing points to any more."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from glue_jobs.compact.main import main as compact
from glue_jobs.compact.run import PUBLISHED
from glue_jobs.remove_unreachable import remove_unreachable
from glue_jobs.retain.main import main as retain
from glue_jobs.store import open_store
from glue_jobs.workspace import DirectWorkspace, StagedWorkspace
from millrace.lake.adapters.memory.objects import MemoryObjects
from millrace.lake.application.editions import Current, Editions
from millrace.lake.domain.archive import EventWriter, sortable_time
from millrace.lake.domain.edition import EVENTS, Edition, File, Segment
from millrace.lake.domain.retention import RetentionRequest
from millrace.lake.ports.objects import Fetched
from millrace.ledger.domain.errors import BadRequest, Unavailable
from tests.jobs.lake import NOW, Lake, line, rows_of

SYNC = "sync#acme#demo"


class Counting(MemoryObjects):
    def __init__(self) -> None:
        super().__init__()
        self.got: list[str] = []

    def get(self, name: str) -> Fetched | None:
        self.got.append(name)
        return super().get(name)


def test_staged_runs_fetch_each_object_once_and_publish_what_direct_ones_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    objects = Counting()
    workspace = StagedWorkspace(objects, tmp_path / "stage", "s3://bucket/")
    lake = Lake(spark, tmp_path / "unused")
    for first in (1, 3):
        writer = EventWriter()
        for n in (1, first, first + 1):
            writer.add_line(line(SYNC, f"k{n}", n))
        made = writer.finish()
        objects.put(made.name, made.data)
        assert lake.compact(workspace=workspace).outcome == PUBLISHED
    fetched = [name for name in objects.got if name.endswith((".jsonl.gz", ".parquet"))]
    assert len(fetched) == len(set(fetched)) == 2
    edition = Editions(objects).current().edition
    files = workspace.paths([file for segment in edition.segments(EVENTS) for file in segment.files])
    rows = rows_of(EVENTS, [file.removeprefix("file://") for file in files])
    assert sorted(row["sequence_position"] for row in rows) == [1, 2, 3, 4]
    remove_unreachable(workspace, NOW, 0)
    assert not (tmp_path / "stage/ledger").exists()


def test_an_object_that_is_gone_is_told(tmp_path: Path) -> None:
    workspace = StagedWorkspace(MemoryObjects(), tmp_path, "s3://bucket/")
    with pytest.raises(Unavailable, match="gone"):
        workspace.paths([File("ledger/x.jsonl.gz", 3)])


def published(objects: MemoryObjects, number: int, created_ms: int, began_ms: int | None = None) -> Edition:
    """An edition of one file, which replaces the one before."""
    run = f"{sortable_time(created_ms if began_ms is None else began_ms)}-{number}"
    file = File(f"lake/runs/{run}/events/part-0.parquet", 1)
    objects.put(file.name, b"x")
    edition = Edition(number, run, created_ms).having(EVENTS, [Segment(run, 1, (file,))])
    editions = Editions(objects)
    assert editions.publish(editions.current(), edition)
    return edition


def test_a_file_goes_when_no_edition_within_the_grace_time_has_it() -> None:
    """C6: a reader that follows the pointer has the grace time to finish."""
    objects = MemoryObjects()
    old, replaced, current = (published(objects, n, created) for n, created in ((1, 1_000), (2, 5_000), (3, 9_000)))
    dead = f"lake/runs/{sortable_time(2_000)}-dead/events/part-0.parquet"
    running = f"lake/runs/{sortable_time(9_500)}-running/events/part-0.parquet"
    objects.put(dead, b"half")
    objects.put(running, b"half")
    workspace = DirectWorkspace(objects, "s3://bucket/")
    assert remove_unreachable(workspace, now_ms=10_000, grace_ms=2_000) == 3
    left = {name for name in objects.stored if name.startswith("lake/runs/")}
    assert left == {*replaced.files(EVENTS), *current.files(EVENTS), running}
    assert old.manifest not in objects.stored
    assert remove_unreachable(workspace, now_ms=20_000, grace_ms=2_000) == 3
    assert {name for name in objects.stored if name.startswith("lake/runs/")} == set(current.files(EVENTS))
    assert Editions(objects).current().edition == current


def test_a_run_that_lost_does_not_hide_the_edition_that_won() -> None:
    """C6: two with one number; the loser began later and was created earlier, before the grace time."""
    objects, grace = MemoryObjects(), 10_000
    won = published(objects, 1, created_ms=101_000, began_ms=95_000)
    lost = Edition(1, f"{sortable_time(96_000)}-lost", created_ms=99_000)
    assert not Editions(objects).publish(Current(Edition(), None), lost)
    published(objects, 2, created_ms=109_000)
    remove_unreachable(DirectWorkspace(objects, "s3://bucket/"), now_ms=110_000, grace_ms=grace)
    assert objects.get(won.files(EVENTS)[0]), "it was current until a second ago"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--grace-hours", "nan"], "hours"),
        (["--grace-hours", "inf"], "hours"),
        (["--grace-hours", "-1"], "hours"),
        (["--grace-hours", "soon"], "hours"),
        (["--batch", "0"], "integer from 1"),
        (["--bach", "5"], "--bach"),
        (["nonsense"], "nonsense"),
    ],
)
def test_a_misspelt_argument_is_refused_before_anything_is_done(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        compact(["--store", str(tmp_path), *arguments])
    assert refused.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("pruner", ["nowhere.at_all:made", "json:nothing", "json", ":"])
def test_a_pruner_that_is_not_there_is_told_in_a_line(
    pruner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/retention.json").write_bytes(RetentionRequest().to_json())
    assert retain(["--store", str(tmp_path), "--execute", "true", "--pruner", pruner]) == 1
    assert "pruner" in capsys.readouterr().err


def test_a_store_is_a_bucket_or_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_store(str(tmp_path)).root == f"{tmp_path.as_uri()}/"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert open_store("s3://bucket/some/prefix").root == "s3://bucket/some/prefix/"
    assert isinstance(open_store("s3://bucket", str(tmp_path)), StagedWorkspace)
    with pytest.raises(BadRequest, match="directory"):
        open_store("ftp://bucket")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadRequest, match="make run"):
        open_store(None)
    (tmp_path / ".local").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        stack = {"endpoint_url": f"http://127.0.0.1:{server.getsockname()[1]}", "region": "us-east-1"}
        (tmp_path / ".local/stack.json").write_text(json.dumps(stack))
        with pytest.raises(BadRequest, match="archive_bucket"):
            open_store(None)
        (tmp_path / ".local/stack.json").write_text(json.dumps(stack | {"archive_bucket": "archive"}))
        assert open_store(None).root == "s3://archive/"
