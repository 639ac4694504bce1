"""Copies: what is left of events that retention let go, outside the tables: objects that gave no row, and quarantine.

No policy speaks of them, so they go with the event: once its position has been pruned, nothing keeps a copy.
"""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from glue_jobs.compact.intake import is_archive_object
from glue_jobs.compact.parse import archive_object, parse
from glue_jobs.compact.write import Segments
from glue_jobs.workspace import Workspace
from millrace.lake.application.editions import names_in
from millrace.lake.application.quarantine import Entry, ListQuarantine, entry_of
from millrace.lake.domain.archive import FOLDER
from millrace.lake.domain.edition import PROCESSED, QUARANTINE, Edition, File, Segment
from millrace.ledger.domain.ranges import Ranges


@dataclass(frozen=True, slots=True)
class Copies:
    """The archive objects that compaction has read and that are still there, and the lines in quarantine."""

    spark: SparkSession
    workspace: Workspace
    objects: Sequence[File]
    entries: Sequence[Entry]

    @classmethod
    def of(cls, spark: SparkSession, workspace: Workspace, edition: Edition) -> Copies:
        read = {name for file in edition.files(PROCESSED) for name in names_in(workspace.objects, file)}
        there = [File(one.name, one.size) for one in workspace.objects.list(FOLDER) if one.name in read]
        return cls(spark, workspace, there, list(ListQuarantine(workspace.objects)()))

    def awaited(self, gone: Mapping[str, Ranges]) -> set[str]:
        """Objects with something that may still be repaired and driven again."""
        return {one.object for one in self.entries if one.redriven is None and not _pruned(one, gone)}

    def without_rows(self, events: DataFrame, gone: DataFrame) -> set[str]:
        """Objects that gave no row of the table and all of whose lines tell events that were let go."""
        published = {row["archive_object"] for row in events.select("archive_object").distinct().toLocalIterator()}
        unreadable = {one.object for one in self.entries if one.sha256 is None}
        rowless = [
            file
            for file in self.objects
            if file.name not in published and file.name not in unreadable and is_archive_object(file.name)
        ]
        if not rowless:
            return set()
        text = self.spark.read.option("lineSep", "\n").text(self.workspace.paths(rowless))
        lines = parse(text.select(F.col("value").alias("line"), archive_object().alias("object")))
        told = lines.select("object", F.col("ledger").alias("of"), F.col("sequence_position").alias("position"))
        same = (F.col("of") == F.col("ledger")) & F.col("position").between(F.col("first"), F.col("last"))
        kept = told.join(gone, same, "left_anti").select("object").distinct()
        return {file.name for file in rowless} - {row["object"] for row in kept.toLocalIterator()}

    def set_free(self, gone: Mapping[str, Ranges], going: Collection[str]) -> list[Entry]:
        """Entries whose event was let go, or that were driven again into an object that goes, or has gone."""
        there = {file.name for file in self.objects} - set(going)
        return [one for one in self.entries if _pruned(one, gone) or (one.redriven and one.redriven not in there)]


def without_entries(edition: Edition, ids: Collection[str], segments: Segments) -> Edition:
    """The edition without these lines in quarantine; only files that lose some are written again."""
    kept: list[Segment] = []
    for number, segment in enumerate(edition.segments(QUARANTINE)):
        left, again, lost = [], [], 0
        for file in segment.files:
            found = segments.workspace.objects.get(file.name)
            lines = gzip.decompress(found.data).splitlines() if found else []
            stay = [line for line in lines if entry_of(line).id not in ids]
            if len(stay) == len(lines):
                left.append(file)
            else:
                again += stay
                lost += len(lines)
        kept.append(Segment(segment.run, segment.rows - lost, tuple(left)))
        if again:
            data = gzip.compress(b"".join(line + b"\n" for line in again), mtime=0)
            kept.append(segments.put(f"{QUARANTINE}-{number}", "lines.gz", data, len(again)))
    return edition.having(QUARANTINE, kept)


def ranges_of(pruned: DataFrame, ledgers: Iterable[str]) -> dict[str, list[tuple[int, int]]]:
    """What was let go of these ledgers before."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for row in pruned.where(F.col("ledger").isin(*ledgers)).toLocalIterator():
        spans.setdefault(row["ledger"], []).append((row["first"], row["last"]))
    return spans


def _pruned(entry: Entry, gone: Mapping[str, Ranges]) -> bool:
    position = entry.sequence_position
    return entry.ledger is not None and position is not None and position in gone.get(entry.ledger, Ranges())
