"""Retention over tables, archive and log (C8, S13): nothing goes while somebody needs it, and what goes is recorded."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from glue_jobs.columns import SCHEMAS
from glue_jobs.compact.run import PUBLISHED
from glue_jobs.literal import literal_rows
from glue_jobs.retain import transforms
from glue_jobs.retain.main import main
from glue_jobs.retain.run import DONE, DRY, NOTHING, RemovalReport, Retain
from millrace.lake.adapters.iceberg_catalog import iceberg_tables
from millrace.lake.application.quarantine import ListQuarantine, Redrive
from millrace.lake.application.verify_tables import VerifyTables
from millrace.lake.domain.archive import SUFFIX
from millrace.lake.domain.edition import EVENTS, KEYS, PRUNED, STATISTICS
from millrace.lake.domain.retention import Release, RetentionRequest
from millrace.ledger.adapters.memory import MemoryLog, MemoryState
from millrace.ledger.application.prune import Prune, Pruned
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Origin, Page, Record
from millrace.ledger.domain.ranges import Ranges
from tests.jobs.conftest import QUICK_ARGUMENTS
from tests.jobs.faults import FaultyWorkspace, Killed
from tests.jobs.lake import NOW, Lake, line

SYNC, OTHER = "sync#acme#demo", "sync#acme#other"
KILLS = int(os.environ.get("MILLRACE_LAKE_KILLS", "3"))


def test_nothing_may_go_while_one_of_its_partitions_needs_it(spark: SparkSession) -> None:
    """S13, C8: each ledger is a case of its own, with random partitions, watermarks, readers and holes."""
    seeded = random.Random(11)
    names = ["p", "q", "r"]
    events: list[dict[str, Any]] = []
    releases: dict[str, Release] = {}
    expected = set()
    for number in range(200):
        ledger, count = f"sync#acme#{number}", seeded.randint(1, 12)
        own = {name: seeded.randint(0, count + 2) for name in names if seeded.random() < 0.6}
        release = Release(seeded.randint(0, count + 2), seeded.choice((0, seeded.randint(0, count + 2))), own)
        if seeded.random() < 0.9:
            releases[ledger] = release
        hole = seeded.choice((count + 1, seeded.randint(1, count)))
        for position in range(1, count + 1):
            named = seeded.sample(names, seeded.randint(0, 3))
            if position != hole:
                events.append({"ledger": ledger, "position": position, "partitions": named})
            if ledger in releases and position < hole and release.allows(position, named):
                expected.add((ledger, position))
    table = literal_rows(spark, events, "ledger string, position bigint, partitions array<string>")
    request = RetentionRequest(releases)
    covered = transforms.covered_rows(table, literal_rows(spark, [], SCHEMAS[PRUNED]))
    of = transforms.release_rows(spark, request), transforms.mark_rows(spark, request)
    going = transforms.may_go_rows(table, *of, covered)
    assert going.columns == table.columns
    assert {(row["ledger"], row["position"]) for row in going.collect()} == expected
    assert 200 < len(expected) < len(events) - 200, "the cases must go both ways"


def test_compaction_s_position_ends_at_the_first_hole(spark: SparkSession) -> None:
    """C8: what went before closes a hole, what is in quarantine leaves one."""
    held = {"a": [1, 2, 3], "b": [2, 3], "c": [1, 2, 4, 5], "d": [6, 7, 9]}
    events = [{"ledger": ledger, "position": position} for ledger, some in held.items() for position in some]
    went = [{"ledger": "d", "first": 1, "last": 3}, {"ledger": "d", "first": 2, "last": 5}]
    pruned = literal_rows(spark, went, SCHEMAS[PRUNED])
    covered = transforms.covered_rows(literal_rows(spark, events, "ledger string, position bigint"), pruned)
    assert {row["ledger"]: row["covered"] for row in covered.collect()} == {"a": 3, "c": 2, "d": 7}


def test_positions_become_ranges(spark: SparkSession) -> None:
    positions = [{"ledger": "a", "position": position} for position in (1, 2, 4, 4, 5, 9)]
    rows = literal_rows(spark, positions, "ledger string, position bigint")
    found = transforms.spans(rows).orderBy("first").collect()
    assert [(row["first"], row["last"]) for row in found] == [(1, 2), (4, 5), (9, 9)]


class Log:
    """The real pruning over a log in memory, as a job gets it."""

    def __init__(self) -> None:
        self.log, self.state = MemoryLog(), MemoryState()
        self.reluctant = False
        """Whether it lets only the first position go."""

    def commit(self, ledger: str, ids: list[str], archived: int) -> None:
        records = tuple(Record(id_, b"d", b"{}") for id_ in ids)
        self.log.append(Ledger.to_read(ledger), Page(1, records, NOW, Origin("c"), b"n"))
        self.state.move_cursor(Ledger.to_read(ledger), "archive", 0, archived)

    def prune(self, ledger: str, ranges: Ranges) -> Pruned:
        empty = Prune(self.log, self.state, ["archive"])
        going = Ranges.of([1]) if self.reluctant else ranges
        pruned = empty(Ledger.to_read(ledger), ranges.last, lambda event: event.position in going)
        return replace(pruned, complete=not self.reluctant)

    def bodies(self, ledger: str) -> list[int]:
        pages = self.log.read(Ledger.to_read(ledger), 0).pages
        return [event.position for page in pages for event in page.events() if event.record.body is not None]


@dataclass(frozen=True)
class Compacted:
    """A compacted lake of two ledgers in three objects; tests work on copies of its directory."""

    lake: Lake
    first: str
    shared: str
    last: str


@pytest.fixture(scope="session")
def compacted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Compacted:
    lake = Lake(spark, tmp_path_factory.mktemp("compacted"))
    shared = [line(SYNC, "k3", 3, partitions=["p", "q"]), line(OTHER, "o1", 1, partitions=["p"])]
    made = Compacted(
        lake,
        first=lake.archive([line(SYNC, f"k{n}", n, partitions=["p"]) for n in (1, 2)]),
        shared=lake.archive(shared),
        last=lake.archive([line(SYNC, f"k{n}", n, partitions=["p"]) for n in (4, 5)]),
    )
    assert lake.compact().outcome == PUBLISHED
    return made


class Kept:
    """A copy of the compacted lake, with its log."""

    def __init__(self, compacted: Compacted, root: Path) -> None:
        shutil.copytree(compacted.lake.root, root)
        self.lake, self.log = Lake(compacted.lake.spark, root, runs=itertools.count(2)), Log()
        self.first, self.shared, self.last = compacted.first, compacted.shared, compacted.last
        self.log.commit(SYNC, [f"k{n}" for n in range(1, 6)], 5)
        self.log.commit(OTHER, ["o1"], 1)
        self.request = RetentionRequest({SYNC: Release(5, 0, {"p": 4, "q": 2}), OTHER: Release(1)})

    def retain(
        self, *, execute: bool = True, workspace: Any = None, request: RetentionRequest | None = None
    ) -> RemovalReport:
        prune = self.log.prune if execute else None
        where = workspace or self.lake.workspace
        return Retain(self.lake.spark, where, self.lake.new_run, lambda: NOW, prune)(request or self.request)

    def positions(self) -> list[tuple[str, int]]:
        return sorted((row["ledger"], row["sequence_position"]) for row in self.lake.table(EVENTS))

    def archive(self) -> set[str]:
        return {one.name for one in self.lake.objects.list("ledger/")}


@pytest.fixture
def kept(compacted: Compacted, tmp_path: Path) -> Kept:
    return Kept(compacted, tmp_path / "lake")


AFTER = [(SYNC, 3), (SYNC, 5), (OTHER, 1)]


def test_a_dry_run_tells_what_would_go_and_changes_nothing(kept: Kept) -> None:
    """C8."""
    before = {str(path): path.read_bytes() for path in kept.lake.root.rglob("*") if path.is_file()}
    report = kept.retain(execute=False)
    assert (report.outcome, report.manifest) == (DRY, None)
    assert report.plan.ranges == {SYNC: Ranges.of([1, 2, 4])}
    assert report.plan.objects == (kept.first,)
    assert {str(path): path.read_bytes() for path in kept.lake.root.rglob("*") if path.is_file()} == before
    assert kept.log.bodies(SYNC) == [1, 2, 3, 4, 5]


def test_what_may_go_goes_from_the_log_the_tables_and_the_archive_and_is_recorded(kept: Kept) -> None:
    """C8: ids stay known, so nothing comes back; statistics stay as they were."""
    statistics = kept.lake.table(STATISTICS)
    report = kept.retain()
    assert (report.outcome, report.bodies) == (DONE, 3)
    assert kept.positions() == AFTER
    assert kept.log.bodies(SYNC) == [3, 5]
    assert kept.archive() == {kept.shared, kept.last}
    assert report.manifest
    stored = kept.lake.objects.get(report.manifest)
    assert stored
    went = json.loads(gzip.decompress(stored.data))
    assert went["ledgers"] == {SYNC: {"events": 3, "ranges": [[1, 2], [4, 4]]}}
    assert went["archive_objects"] == [kept.first]
    assert kept.lake.table(STATISTICS) == statistics
    assert kept.lake.edition.rows(EVENTS) == len(AFTER)
    assert kept.lake.edition.rows(KEYS) == 6
    assert kept.retain().outcome == NOTHING
    kept.lake.archive([line(SYNC, f"k{n}", n, partitions=["p"]) for n in (1, 2, 6)])
    assert kept.lake.compact().edition.counts["new"] == 1
    further = RetentionRequest({SYNC: Release(9, 0, {"p": 9, "q": 9})})
    assert kept.retain(request=further).plan.ranges == {SYNC: Ranges.of([3, 5, 6])}


@pytest.mark.parametrize(
    "request_",
    [
        RetentionRequest(),
        RetentionRequest({SYNC: Release(5)}),
        RetentionRequest({SYNC: Release(0, 5)}),
        RetentionRequest({SYNC: Release(5, 0, {"r": 5})}),
        RetentionRequest({"sync#acme#third": Release(5, 5)}),
    ],
)
def test_without_a_policy_or_while_a_reader_is_behind_nothing_goes(kept: Kept, request_: RetentionRequest) -> None:
    """C8: no policy means never."""
    assert kept.retain(request=request_).outcome == NOTHING
    assert len(kept.positions()) == 6


def test_what_the_log_does_not_let_go_yet_stays_everywhere_and_goes_next_time(kept: Kept) -> None:
    """C8: a reader may have fallen behind, or another pruner been there."""
    kept.log.reluctant = True
    report = kept.retain()
    assert (report.outcome, report.unfinished) == (NOTHING, (SYNC,))
    assert len(kept.positions()) == 6
    assert kept.first in kept.archive()
    kept.log.reluctant = False
    assert kept.retain().outcome == DONE
    assert kept.positions() == AFTER
    assert kept.log.bodies(SYNC) == [3, 5]


def test_an_object_with_something_in_quarantine_is_kept(kept: Kept) -> None:
    """C7, C8."""
    mixed = kept.lake.archive([line(OTHER, "o2", 2, partitions=["p"]), line("catalog#acme#x", "odd", 1)])
    kept.lake.compact()
    report = kept.retain(request=RetentionRequest({OTHER: Release(9, 9)}))
    assert report.plan.ranges == {OTHER: Ranges.of([1, 2])}
    assert report.plan.objects == ()
    assert mixed in kept.archive()


def test_a_run_that_dies_anywhere_is_finished_by_the_next(kept: Kept) -> None:
    """C6, C8: readers see all of it or none; what is left over is removed later."""
    before = kept.positions()
    probe = FaultyWorkspace(kept.lake.workspace)
    kept.retain(execute=False, workspace=probe)
    seeded = random.Random(3)
    for die_at in seeded.sample(range(3, probe.calls + 12), min(KILLS, probe.calls)):
        try:
            kept.retain(workspace=FaultyWorkspace(kept.lake.workspace, seeded.choice((-1, 1)) * die_at))
        except Killed:
            assert kept.positions() in (before, AFTER)
    kept.retain()
    kept.retain()
    assert kept.positions() == AFTER
    assert kept.log.bodies(SYNC) == [3, 5]
    assert kept.archive() == {kept.shared, kept.last}


def test_the_job_runs_dry_unless_told_and_says_what_it_lacks(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--store", str(kept.lake.root), "--local", "true", *QUICK_ARGUMENTS]
    assert main(where) == 1
    assert "no retention request" in capsys.readouterr().err
    kept.lake.objects.put("lake/retention.json", kept.request.to_json())
    assert main([*where, "--execute", "true"]) == 1
    assert "--pruner" in capsys.readouterr().err
    assert main(where) == 0
    assert f"{SYNC}: 3 events in 2 ranges, up to 4" in capsys.readouterr().err
    assert len(kept.positions()) == 6
    assert main([*where, "--execute", "true", "--pruner", f"{__name__}:nothing_to_empty"]) == 0
    assert kept.positions() == AFTER
    with iceberg_tables(str(kept.lake.root), kept.lake.objects, {}) as tables:
        assert [verdict.equal for verdict in VerifyTables(kept.lake.objects, tables)()[1]] == [True] * 3


def nothing_to_empty() -> Any:
    """A pruner for a lake whose log is elsewhere."""
    return lambda _ledger, _ranges: Pruned(0, complete=True)


def test_copies_of_what_was_pruned_go_although_no_row_is_theirs(kept: Kept) -> None:
    """C8: an archive object that holds only repeats goes with the events it repeats, and not before."""
    assert kept.retain().outcome == DONE
    repeats = [line(SYNC, f"k{n}", n, partitions=["p"]) for n in (2, 4)]
    gone, half = kept.lake.archive(repeats), kept.lake.archive([repeats[0], line(SYNC, "k5", 5, partitions=["p"])])
    kept.lake.compact()
    dry = kept.retain(execute=False)
    assert (dry.plan.ranges, dry.plan.objects) == ({}, (gone,))
    assert kept.archive() >= {gone, half}
    report = kept.retain()
    assert (report.outcome, report.plan.objects) == (DONE, (gone,))
    assert kept.archive() == {kept.shared, kept.last, half}
    assert kept.positions() == AFTER
    everything = RetentionRequest({SYNC: Release(9, 9), OTHER: Release(9, 9)})
    assert kept.retain(request=everything).outcome == DONE
    assert kept.archive() == set(), "of the last event every copy goes"
    assert kept.retain(request=everything).outcome == NOTHING


def test_a_repaired_line_leaves_quarantine_with_its_event(kept: Kept) -> None:
    """C7, C8: a policy reaches the copies in quarantine, of a line and of an object that could not be read."""
    odd = line(OTHER, "o2", 2, partitions=["p"], occurred_at="2026-02-31T10:00:00Z")
    broken = kept.lake.archive_raw(f"9-odd{SUFFIX}", [json.dumps(odd).encode(), b"nobody knows"])
    cut = kept.lake.archive_bytes(f"9-cut{SUFFIX}", b"cut off")
    kept.lake.compact()
    entries = {one.sequence_position or one.reason: one.id for one in ListQuarantine(kept.lake.objects)()}
    again = {entries[2]: [line(OTHER, "o2", 2)], entries["corrupt_object"]: [line(OTHER, "o3", 3)]}
    driven = set(Redrive(kept.lake.objects)([*again], again).values())
    assert kept.lake.compact().edition.counts["new"] == 2
    assert kept.retain().outcome == DONE
    assert len(kept.lake.quarantine()) == 3, "while its event is there, the entry tells where it came from"
    report = kept.retain(request=RetentionRequest({OTHER: Release(9, 9)}))
    assert (report.outcome, report.plan.ranges) == (DONE, {OTHER: Ranges.of([1, 2, 3])})
    assert sorted(report.plan.quarantined) == sorted(again)
    assert [one["id"] for one in kept.lake.quarantine()] == [entries["malformed"]], "a line of no ledger stays"
    assert kept.lake.edition.rows("quarantine") == 1
    assert not {cut, *driven} & kept.archive()
    assert broken in kept.archive(), "it has a line that may still be repaired"
