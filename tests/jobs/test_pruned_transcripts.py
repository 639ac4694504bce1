"""R8, C9: the table of transcripts agrees with the hub's own, before and after what it was made from is pruned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from glue_jobs.read import read_table
from glue_jobs.retain.run import DONE, Retain
from millrace.lake.application.retain_events import PruneRanges
from millrace.lake.domain.edition import EVENTS, TRANSCRIPTS
from millrace.lake.domain.retention import Release, RetentionRequest
from tests.jobs.lake import NOW, Lake, line
from tests.unit.realtime.test_publish_and_replay import SESSION, Hub, partial

FIELDS = {"utterance_id": "utteranceId", "event_id": "eventId", "text": "text", "final": "final", "ts": "ts"}


class Talk:
    """One session, in a hub in memory and in a lake."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.hub, self.lake = Hub(), Lake(spark, root)

    def publish(self, *events: dict[str, Any]) -> None:
        stored = [result.event for result in self.hub.publish(*events)]
        self.lake.archive(
            [
                line(
                    SESSION.name,
                    one["eventId"],
                    one["sequence"],
                    payload=dict(one),
                    event_type=f"realtime.{one['type']}",
                )
                for one in stored
                if one is not None
            ]
        )
        self.lake.compact()

    def prune(self, through: int) -> None:
        for consumer in ("archive", "fan_out"):
            before = self.hub.state.marks(SESSION).cursors.get(consumer, 0)
            self.hub.state.move_cursor(SESSION, consumer, before, through)
        prune = PruneRanges(self.hub.log, self.hub.state, lambda: True, self.hub.folder().keep)
        retain = Retain(self.lake.spark, self.lake.workspace, self.lake.new_run, lambda: NOW, prune)
        assert retain(RetentionRequest({SESSION.name: Release(through, through)})).outcome == DONE

    def in_the_table(self) -> list[dict[str, Any]]:
        rows = read_table(self.lake.spark, self.lake.workspace, TRANSCRIPTS).collect()
        return sorted(({name: row[name] for name in FIELDS} for row in rows), key=lambda row: row["utterance_id"])

    def in_the_hub(self) -> list[dict[str, Any]]:
        told = self.hub.transcript().utterances
        return [{name: utterance[key] for name, key in FIELDS.items()} for utterance in told]


def test_the_table_of_transcripts_and_the_hub_agree_when_finals_are_pruned_and_partials_come_late(
    spark: SparkSession, tmp_path: Path
) -> None:
    talk = Talk(spark, tmp_path)
    talk.publish(partial("f1", "u1", 1, "final"), partial("p2", "u2", 30), partial("p3", "u3", 5))
    assert talk.in_the_table() == talk.in_the_hub()
    talk.prune(3)
    assert talk.lake.table(EVENTS) == []
    assert talk.in_the_table() == talk.in_the_hub()
    talk.publish(partial("late1", "u1", 59), partial("late2", "u2", 29), partial("f3", "u3", 2, "final"))
    assert talk.in_the_table() == talk.in_the_hub()
    assert [row["text"] for row in talk.in_the_hub()] == ["f1", "p2", "f3"]
