"""Compaction on small archives: what a run adds, leaves alone, sets aside or refuses."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from glue_jobs.columns import SCHEMAS
from glue_jobs.compact.run import NOTHING_NEW, OVERTAKEN, PUBLISHED, Compact, RejectedEvent
from glue_jobs.compact.write import Segments
from glue_jobs.literal import literal_rows
from glue_jobs.workspace import Workspace
from millrace.lake.application.editions import Editions
from millrace.lake.domain.archive import SUFFIX, EventWriter
from millrace.lake.domain.edition import EVENTS, KEYS, PROCESSED, STATISTICS, TRANSCRIPTS, File
from millrace.lake.domain.registry import FALLBACK, QUARANTINE, REJECT, Known, Registry
from millrace.ledger.domain.instants import instant
from tests.jobs.faults import FaultyWorkspace
from tests.jobs.lake import Lake, line

SYNC = "sync#acme#demo"
ORDERS = "catalog#acme#orders"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path)


def written_line(content: dict[str, Any]) -> bytes:
    writer = EventWriter()
    writer.add_line(content)
    return gzip.decompress(writer.finish().data).rstrip(b"\n")


def everything(lake: Lake) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in lake.root.rglob("*") if path.is_file()}


def test_a_second_run_over_the_same_archive_changes_nothing(lake: Lake) -> None:
    """C6."""
    lake.archive([line(SYNC, f"k{n}", n) for n in range(1, 6)])
    assert lake.compact().outcome == PUBLISHED
    before = everything(lake)
    assert [row["sequence_position"] for row in lake.table(EVENTS)] == [1, 2, 3, 4, 5]

    def refuse(_: int) -> SparkSession:
        raise AssertionError("a run with nothing to do starts no Spark")

    again = Compact(refuse, lake.workspace, lake.registry, lake.new_run, lambda: 0)
    assert again().outcome == NOTHING_NEW
    assert everything(lake) == before


def test_a_published_row_is_never_replaced_and_a_late_object_is_never_skipped(lake: Lake) -> None:
    """C4, C5: the late object sorts first and holds an earlier twin of what is published."""
    lake.archive([line(SYNC, "a", 7, payload={"told": "first"})])
    lake.compact()
    twin = line(SYNC, "a", 1, payload={"told": "later"}, committed_at=5)
    late = lake.archive([twin, line(SYNC, "b", 2, committed_at=5)])
    assert late < lake.table(EVENTS)[0]["archive_object"]
    counts = lake.compact().edition.counts
    assert (counts["new"], counts["duplicates"]) == (1, 1)
    rows = {row["idempotency_key"]: row for row in lake.table(EVENTS)}
    assert json.loads(rows["a"]["payload"]) == {"told": "first"}
    assert rows["b"]["archive_object"] == late


def test_of_one_key_the_lowest_position_wins_then_the_first_object_then_the_earliest_time(lake: Lake) -> None:
    """C4: a clock that is wrong does not count where there are positions, nor where objects sort."""
    early, late = "2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z"
    first, second = 1_770_000_000_000, 1_770_000_001_000
    lake.archive(
        [
            line(ORDERS, "by position", 3, occurred_at=late, payload="wins", committed_at=second),
            line(ORDERS, "by object", occurred_at=early, payload="loses", committed_at=second),
        ]
    )
    lake.archive(
        [
            line(ORDERS, "by position", 4, occurred_at=early, payload="loses", committed_at=first),
            line(ORDERS, "by object", occurred_at=late, payload="wins", committed_at=first),
            line(ORDERS, "by time", occurred_at=late, payload="loses", committed_at=first),
            line(ORDERS, "by time", occurred_at=early, payload="wins", committed_at=first),
        ]
    )
    lake.registry = Registry({"order.placed": Known({1: {}})})
    lake.compact()
    rows = {row["idempotency_key"]: json.loads(row["payload"]) for row in lake.table(EVENTS)}
    assert rows == {"by position": "wins", "by object": "wins", "by time": "wins"}


def test_small_segments_are_folded_into_larger_ones_and_nothing_else_changes(lake: Lake) -> None:
    """C6: the number of files follows the logarithm of the number of runs."""
    for number in (1, 2, 3):
        lake.archive([line(SYNC, f"k{number}", number)])
        lake.compact(fan_in=3)
    for table in (EVENTS, KEYS, PROCESSED, STATISTICS):
        assert [segment.run for segment in lake.edition.segments(table)] == [lake.edition.run]
    assert sorted(row["sequence_position"] for row in lake.table(EVENTS)) == [1, 2, 3]
    assert lake.table(STATISTICS)[0]["events"] == 3
    lake.archive([line(SYNC, "k1", 1), line(SYNC, "k4", 4)])
    assert lake.compact().edition.counts["new"] == 1


def test_keys_lie_drawer_by_drawer_and_those_of_an_older_version_still_count(lake: Lake) -> None:
    """C4, C6: a run reads the drawers of its own ledgers, and whatever has none."""
    lake.archive([line(f"sync#acme#p{n % 3}", f"k{n}", n) for n in range(1, 31)])
    lake.compact()
    (file,) = lake.edition.files(KEYS)
    keys = parquet.read_table(lake.root / file)
    drawers = keys["drawer"].to_pylist()
    assert drawers == sorted(drawers)
    assert len(set(drawers)) == 3
    parquet.write_table(keys.drop_columns(["drawer"]), lake.root / file)
    for checksum in (lake.root / file).parent.glob(".*.crc"):
        checksum.unlink()
    lake.archive([line("sync#acme#p1", "k1", 1), line("sync#acme#p1", "k31", 31)])
    assert lake.compact().edition.counts["new"] == 1
    lake.archive([line("sync#acme#p1", "k31", 31), line("sync#acme#p2", "k2", 2), line("sync#acme#p2", "k31", 31)])
    assert lake.compact().edition.counts["new"] == 1, "old and new files of keys are read side by side"


def test_no_file_gets_more_than_its_share_of_a_ledger_that_has_half_of_all_events(lake: Lake) -> None:
    """C6: one huge ledger is cut by position."""
    events = lake.spark.range(20_000).selectExpr(
        "if(id % 2 = 0, 'sync#acme#huge', concat('sync#acme#', id % 20)) AS ledger", "id + 1 AS sequence_position"
    )
    segments = Segments(lake.spark, lake.workspace, "0000000000-skewed", lambda _: None)
    rows = literal_rows(lake.spark, [], SCHEMAS[EVENTS]).unionByName(events, allowMissingColumns=True)
    written = segments.write(EVENTS, rows, 8)
    shares = [parquet.read_metadata(lake.root / name).num_rows for name in written.names]
    assert len(shares) == 8
    assert sum(shares) == 20_000
    assert max(shares) <= 1.3 * 20_000 / 8


def test_a_rejecting_registry_fails_the_run_names_the_event_and_changes_nothing(lake: Lake) -> None:
    """C5."""
    lake.registry = Registry({"order.placed": Known({1: {}}, REJECT)})
    lake.archive([line(ORDERS, "good", 1), line(ORDERS, "bad", 2, event_version=9, payload={"secret": "s3cret"})])
    before = everything(lake)
    with pytest.raises(RejectedEvent, match=r"order\.placed, event_version 9.*position 2.*bad") as refused:
        lake.compact()
    assert "s3cret" not in refused.value.message
    assert everything(lake) == before
    lake.registry = Registry({"order.placed": Known({1: {}, 9: {}}, REJECT)})
    assert lake.compact().edition.counts["new"] == 2


def test_a_quarantined_event_is_kept_with_its_reason_and_origin(lake: Lake) -> None:
    """C5, C7."""
    lake.registry = Registry({"order.placed": Known({1: {}}, QUARANTINE)})
    unknown = line(ORDERS, "v9", 2, event_version=9)
    name = lake.archive([line(ORDERS, "v1", 1), unknown, line(ORDERS, "other", 3, event_type="order.lost")])
    counts = lake.compact().edition.counts
    assert (counts["new"], counts["quarantined"]) == (1, 2)
    kept = {one["idempotency_key"]: one for one in lake.quarantine()}
    assert {key: one["reason"] for key, one in kept.items()} == {"v9": "unknown_version", "other": "unknown_type"}
    assert {one["object"] for one in kept.values()} == {name}
    assert json.loads(kept["v9"]["line"]) == unknown


def test_a_fallback_fills_the_defaults_of_the_nearest_version(lake: Lake) -> None:
    """C5: what the event says itself is kept, null included."""
    known = Known({2: {"a": 1}, 4: {"a": 1, "b": {"c": [True, None]}, "d": "\u00e9\"'"}}, FALLBACK)
    lake.registry = Registry({"order.placed": known}, policy=FALLBACK)
    payloads: dict[str, tuple[int, Any]] = {
        "below": (1, {"x": 1}),
        "between": (3, {}),
        "above": (9, {"a": None, "x": [1]}),
        "known": (4, {"x": 1}),
        "not_an_object": (9, [1]),
    }
    lines = [line(ORDERS, key, event_version=v, payload=payload) for key, (v, payload) in payloads.items()]
    lake.archive([*lines, line(ORDERS, "unheard", event_type="order.lost", payload=5)])
    lake.compact()
    rows = {row["idempotency_key"]: row for row in lake.table(EVENTS)}
    assert {key: (json.loads(row["payload"]), row["filled"]) for key, row in rows.items()} == {
        "below": ({"x": 1, "a": 1}, True),
        "between": ({"a": 1}, True),
        "above": ({"a": None, "x": [1], "b": {"c": [True, None]}, "d": "\u00e9\"'"}, True),
        "known": ({"x": 1}, False),
        "unheard": (5, True),
    }
    assert [one["reason"] for one in lake.quarantine()] == ["payload_not_an_object"]


NOT_JSON = (
    *(b'{"a":1}]xyz', b'{"a":1}],[2', b'{"a":1},0]xyz', b'{"a":1},0', b'{"a":[1]},0,0]', b'{"a":1}]}', b"null"),
    *(
        b'{"a":1}],"x":[{"a":1}',
        b'{"a":1}],"payload":[{}',
        b'{"a":1},{"a":1}',
        b'{"a":1}]',
        b'{"a":"\x01"}',
        b'{"a":\t1}',
    ),
    *(b"{'a':1}", b"""{"a":'b'}""", b"'a'", b'{"a":"\t"}', b'{"a":01}', b'{"a":NaN}', b'{"a":1,}', b"{a:1}", b"nul"),
)
JSON = (b"""{"a":"it's [1],0"}""", b"[[1,0],0]", b'"]"', b"0", b"false", b"[]", b'{"a":"\\t"}', b"[null]")


def test_any_json_is_a_payload_and_is_kept_as_it_is(lake: Lake) -> None:
    """C4."""
    good = written_line(line(SYNC, "good", 1))
    lines = [good.replace(b'{"key":"good"}', one).replace(b'"good"', b'"k%d"' % n) for n, one in enumerate(JSON)]
    lake.archive_raw(f"1-any{SUFFIX}", lines)
    assert lake.compact().edition.counts["quarantined"] == 0
    assert sorted(row["payload"] for row in lake.table(EVENTS)) == sorted(one.decode() for one in JSON)


@pytest.mark.parametrize("when", ["0001-01-01T00:00:00Z", "1582-10-14T00:00:00Z", "1899-12-31T23:59:59Z"])
def test_an_event_that_tells_a_time_long_ago_holds_no_other_back(lake: Lake, when: str) -> None:
    """C4: the time of a clock that was never set is a time like any other."""
    lake.archive([line(SYNC, "old", 1, occurred_at=when), line(SYNC, "new", 2)])
    assert lake.compact().edition.counts["new"] == 2
    assert {row["idempotency_key"]: row["occurred_us"] for row in lake.table(EVENTS)}["old"] == instant(when) // 1000
    lake.archive([line(SYNC, "newer", 3)])
    assert lake.compact().edition.counts["new"] == 1


def test_numbers_too_large_for_spark_spoil_neither_transcripts_nor_defaults(lake: Lake) -> None:
    """C5, C9."""
    lake.registry = Registry({"order.placed": Known({1: {"a": 1}}, FALLBACK)})
    words = {"utteranceId": "u", "speaker": "user", "text": "hello", "startMs": 0, "endMs": 1, "aaa": 10**1200}
    body = {"eventId": "e", "ts": "2026-01-01T00:00:00Z", "type": "transcript.final", "payload": words}
    lake.archive(
        [
            line("realtime#acme#s", "e", 1, payload=body, event_type="realtime.transcript.final"),
            line(ORDERS, "d", 1, event_version=2, payload={"n": 10**1200}),
        ]
    )
    assert lake.compact().edition.counts["quarantined"] == 0
    assert [row["utterance_id"] for row in lake.table(TRANSCRIPTS)] == ["u"]
    assert {row["idempotency_key"]: row["filled"] for row in lake.table(EVENTS)} == {"e": False, "d": True}


class LostAnswer(FaultyWorkspace):
    """The pointer is swapped, the answer lost: the second try is refused, and another run published meanwhile."""

    def __init__(self, inner: Workspace, meanwhile: Callable[[], object]) -> None:
        super().__init__(inner)
        self.meanwhile = meanwhile

    def swap(self, name: str, data: bytes, tag: str) -> bool:
        assert super().swap(name, data, tag)
        self.meanwhile()
        return super().swap(name, data, tag)


def test_a_run_that_does_not_know_it_won_harms_nothing(lake: Lake) -> None:
    """C6."""
    lake.archive([line(SYNC, "k1", 1)])
    lake.compact()
    lake.archive([line(SYNC, "k2", 2)])

    def meanwhile() -> None:
        lake.archive([line(SYNC, "k3", 3)])
        assert lake.compact().outcome == PUBLISHED

    assert lake.compact(workspace=LostAnswer(lake.workspace, meanwhile)).outcome == PUBLISHED
    assert [row["sequence_position"] for row in lake.table(EVENTS)] == [1, 2, 3]
    assert lake.compact().outcome == NOTHING_NEW


def test_what_cannot_be_read_goes_to_quarantine_with_its_object_and_the_run_goes_on(lake: Lake) -> None:
    """C5, C7."""
    good = written_line(line(SYNC, "good", 1))
    fine = gzip.compress(good + b"\n")
    broken = {
        "corrupt": fine[:-9] + b"\xff" * 5 + fine[-4:],
        "cut": gzip.compress(good * 500)[:-20],
        "not-gzip": b"plain text",
        "empty": b"",
        "no-lines": gzip.compress(b""),
    }
    names = {kind: lake.archive_bytes(f"0-{kind}{SUFFIX}", data) for kind, data in broken.items()}
    names["foreign"] = lake.archive_bytes("notes.txt", b"hello")
    assert good.endswith(b',"payload":{"key":"good"}}')
    wrong: dict[str, list[bytes]] = {
        "payload": [
            *(good[: len(good) // 2], good[:-1] + b',{"x":1}}', b"hello", b"", good[:-16] + b"{}"),
            *(good.replace(b'{"key":"good"}', payload) for payload in NOT_JSON),
        ],
        "line": [good[:-3]],
        "event_version": [good.replace(b'"event_version":1', b'"event_version":"1"')],
        "event_type": [good.replace(b'"sync.set"', b"5")],
        "partitions": [good.replace(b'"partitions":[]', b'"partitions":"p"')],
        "sequence_position": [good.replace(b'"sequence_position":1', b'"sequence_position":"1"')],
        "occurred_at": [good.replace(b"2026-02-01T", b"2026-02-31T")],
        "source": [good.replace(b'"tests"', b'""')],
        "committed_at": [re.sub(rb'"committed_at":[0-9]+', b'"committed_at":%d' % ms, good) for ms in (2**48, 10**18)],
        "ledger": [good.replace(b'"ledger"', b'"leather"')],
    }
    large = good.replace(b'"key"', b'"%b"' % (b"x" * 10_000_000))
    digits = good.replace(b'{"key":"good"}', b'{"n":%b}' % (b"9" * 4_200)).replace(b'"good"', b'"digits"')
    mixed = lake.archive_raw(f"1-mixed{SUFFIX}", [*(one for some in wrong.values() for one in some), large, digits])
    lake.archive([line(SYNC, "good", 1)])
    counts = lake.compact().edition.counts
    kept = lake.quarantine()
    assert {one["object"]: one["reason"] for one in kept if one["object"] != mixed} == {
        names["corrupt"]: "corrupt_object",
        names["cut"]: "corrupt_object",
        names["not-gzip"]: "corrupt_object",
        names["empty"]: "empty_object",
        names["no-lines"]: "empty_object",
        names["foreign"]: "foreign_object",
    }
    fields: dict[str, list[bytes]] = {}
    for one in kept:
        if one.get("reason") == "malformed":
            fields.setdefault(one["field"], []).append(one["line"].encode())
    assert {field: sorted(some) for field, some in fields.items()} == {
        field: sorted(some) for field, some in wrong.items()
    }
    too_large = [one for one in kept if one["reason"] == "too_large"]
    assert [(one["bytes"], "line" in one) for one in too_large] == [(len(large), False)]
    assert (counts["new"], counts["quarantined"]) == (2, 16 + len(NOT_JSON))
    assert {row["idempotency_key"] for row in lake.table(EVENTS)} == {"good", "digits"}
    assert lake.compact().outcome == NOTHING_NEW


def test_of_two_runs_at_once_one_wins_and_the_other_leaves_nothing(lake: Lake) -> None:
    """C6."""
    lake.archive([line(SYNC, f"k{n}", n) for n in range(1, 4)])
    outcomes = []

    def look(call: int) -> None:
        if call == 8:
            outcomes.append(lake.compact())

    slow = lake.compact(workspace=FaultyWorkspace(lake.workspace, look=look))
    assert (outcomes[0].outcome, slow.outcome) == (PUBLISHED, OVERTAKEN)
    assert [row["sequence_position"] for row in lake.table(EVENTS)] == [1, 2, 3]
    assert slow.edition.run == outcomes[0].edition.run
    runs = {one.name.split("/")[2] for one in lake.objects.list("lake/runs/")}
    assert len(runs) == 2, "the loser's files are removed when no reader can have them"
    assert lake.compact().outcome == NOTHING_NEW


def test_tables_that_an_older_version_left_in_several_parts_are_merged_by_the_next_run(lake: Lake) -> None:
    """C9."""
    lake.archive([line(SYNC, "k1", 1)])
    lake.compact()
    editions = Editions(lake.objects)
    current = editions.current()
    (days,) = current.edition.segments(STATISTICS)
    again = File(days.names[0].replace("/part-", "/again-part-"), days.files[0].size)
    (lake.root / again.name).write_bytes((lake.root / days.names[0]).read_bytes())
    older = replace(current.edition, number=2, merged=False).having(STATISTICS, [days, replace(days, files=(again,))])
    assert editions.publish(current, older)
    for number in (2, 3):
        lake.archive([line(SYNC, f"k{number}", number)])
        lake.compact()
        (row,) = lake.table(STATISTICS)
        assert (row["events"], row["last_position"]) == (number + 1, number)
        assert lake.edition.rows(STATISTICS) == 1
