"""`make query`: SQL over a copy of the tables, without care for segments."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from local.query import main
from millrace.lake.adapters.directory_objects import DirectoryObjects
from millrace.lake.application.editions import Editions
from millrace.lake.domain.edition import EVENTS, STATISTICS, TRANSCRIPTS, Edition, File, Segment

ROWS = {
    EVENTS: ["SELECT 'sync#acme#it''s' AS ledger, 1 AS sequence_position", "SELECT 'sync#acme#it''s', 2"],
    TRANSCRIPTS: [
        "SELECT 'l' AS ledger, 'u' AS utterance_id, 'partial' AS text, '1' AS rank",
        "SELECT 'l', 'u', 'final', '2'",
    ],
    STATISTICS: [
        (
            "SELECT 'l' AS ledger, 'sync' AS contract, 't' AS tenant, DATE '2026-01-01' AS day, 3 AS events, "
            "30 AS payload_bytes, 1 AS first_position, 3 AS last_position, "
            "TIMESTAMP '2026-01-01' AS first_committed_at, TIMESTAMP '2026-01-01' AS last_committed_at"
        ),
        "SELECT 'l', 'sync', 't', DATE '2026-01-01', 2, 20, 4, 5, TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-01'",
    ],
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two runs; every table has a segment of each."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "it's a store"
    objects = DirectoryObjects(root)
    edition = Edition(1, "b", 5)
    for table, (first, second) in ROWS.items():
        segments = []
        for run, select in (("a", first), ("b", f"{first} WHERE false UNION ALL {second}")):
            name = f"lake/runs/{run}/{table}/part.parquet"
            (root / name).parent.mkdir(parents=True)
            with duckdb.connect() as database:
                database.sql(select).write_parquet(str(root / name))
            segments.append(Segment(run, 1, (File(name, (root / name).stat().st_size),)))
        edition = edition.having(table, segments)
    assert Editions(objects).publish(Editions(objects).current(), edition)
    return str(root)


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("select max(sequence_position) as head from events where ledger = 'sync#acme#it''s'", "2"),
        ("select text || count(*) over () as one from transcripts", "final1"),
        ("select concat_ws('/', events, payload_bytes, first_position, last_position) from statistics", "5/50/1/5"),
    ],
)
def test_a_statement_sees_every_event_utterance_and_day_once(
    statement: str, shown: str, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """C9."""
    assert main([statement, "--store", store]) == 0
    assert f" {shown} " in capsys.readouterr().out


def test_a_table_without_rows_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    objects = DirectoryObjects(tmp_path / "store")
    assert Editions(objects).publish(Editions(objects).current(), Edition(1, "a", 5))
    for table in ROWS:
        assert main([f"select 40 + count(*) from {table}", "--store", str(tmp_path / "store")]) == 0
        assert " 40 " in capsys.readouterr().out


def test_a_statement_that_is_no_sql_is_refused_with_duckdbs_words(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["selekt 1", "--store", store]) == 1
    assert "selekt" in capsys.readouterr().err


def test_before_the_first_compaction_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["select 1", "--store", str(tmp_path / "empty")]) == 1
    assert "make compact" in capsys.readouterr().err


def test_without_a_hub_it_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["select 1"]) == 2
    assert "--store" in capsys.readouterr().err


def test_the_prompt_answers_statements_of_several_lines_until_its_input_ends(
    store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["select count(*) + 40", "from events;", "nonsense;"])

    def read(_: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", read)
    assert main(["--store", store]) == 0
    shown = capsys.readouterr()
    assert " 42 " in shown.out
    assert "nonsense" in shown.err
