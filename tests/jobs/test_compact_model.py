"""Spark's tables equal those of a model in plain Python, for random archives over several runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from millrace.lake.domain.edition import EVENTS, STATISTICS, TRANSCRIPTS
from tests.jobs.lake import Lake
from tests.jobs.model import Model, by_text
from tests.jobs.random_archives import REGISTRY, Archives, as_object

SEEDS = [int(seed) for seed in os.environ.get("MILLRACE_LAKE_SEEDS", "1,2").split(",")]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_tables_equal_a_model_of_dictionaries_and_sorts(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """C4, C5, C9, R8."""
    lake, model = Lake(spark, tmp_path, REGISTRY), Model(REGISTRY)
    for objects in Archives(seed).runs():
        named = {lake.archive_bytes(name, as_object(lines)): lines for name, lines in objects.items()}
        report = lake.compact()
        before = len(model.published)
        model.run(named)
        assert report.edition.counts["new"] == len(model.published) - before
        assert report.edition.counts["lines"] == sum(map(len, named.values()))
    rows = [{**row, "payload": json.loads(row["payload"])} for row in lake.table(EVENTS)]
    assert by_text(rows) == model.events()
    assert sorted((one["object"], one["idempotency_key"]) for one in lake.quarantine()) == sorted(model.quarantined)
    assert by_text(lake.table(STATISTICS)) == model.statistics()
    told = [{name: value for name, value in row.items() if name != "rank"} for row in lake.table(TRANSCRIPTS)]
    assert by_text(told) == model.transcripts()
