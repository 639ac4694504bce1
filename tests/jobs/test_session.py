"""The settings of a session: the same everywhere, and on a laptop the classes that set-up archived."""

from __future__ import annotations

from pathlib import Path

import pytest

from glue_jobs import session
from glue_jobs.compact.run import MOST_DRAWERS
from glue_jobs.session import JAVA_OPTIONS, ONE_COMPILER, chosen, class_archive


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(session, "own_java", lambda: tmp_path)
    found = class_archive()
    assert found
    found.parent.mkdir(parents=True)
    return found


def test_archived_classes_are_used_beside_the_options_asked_for(archive: Path) -> None:
    archive.touch()
    assert chosen({JAVA_OPTIONS: "-Xint"}, local=True)[JAVA_OPTIONS] == f"-Xint -XX:SharedArchiveFile={archive}"


def test_without_an_archive_java_gets_only_the_options_asked_for(archive: Path) -> None:
    assert chosen({JAVA_OPTIONS: "-Xint"}, local=True)[JAVA_OPTIONS] == "-Xint"


def test_small_work_gets_one_compiler_unless_options_are_asked_for() -> None:
    small, large = (chosen({}, local=True, small=small)[JAVA_OPTIONS] for small in (True, False))
    assert ONE_COMPILER in small
    assert ONE_COMPILER not in large
    assert ONE_COMPILER not in chosen({JAVA_OPTIONS: "-Xint"}, local=True, small=True)[JAVA_OPTIONS]


def test_whoever_makes_or_names_an_archive_is_given_no_other(archive: Path) -> None:
    archive.touch()
    making = {JAVA_OPTIONS: "-XX:ArchiveClassesAtExit=new.jsa"}
    assert chosen(making, local=True)[JAVA_OPTIONS] == making[JAVA_OPTIONS]


def test_glue_has_its_own_java(archive: Path) -> None:
    archive.touch()
    assert JAVA_OPTIONS not in chosen({}, local=False)


def test_the_key_index_is_asked_for_no_more_drawers_than_a_filter_can_pass_over() -> None:
    """Above this number Spark would read all of it."""
    assert int(chosen({}, local=False)["spark.sql.parquet.pushdown.inFilterThreshold"]) >= MOST_DRAWERS


def test_another_spark_wants_another_archive(monkeypatch: pytest.MonkeyPatch, archive: Path) -> None:
    monkeypatch.setattr("pyspark.__version__", "99.0")
    assert class_archive() != archive
