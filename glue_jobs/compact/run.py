"""Compact: fold the archive's new objects into the tables, once each, in one visible step (C4, C5, C6)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from glue_jobs.compact.gate import ACCEPTED
from glue_jobs.compact.intake import Intake, Judged, entries, json_lines
from glue_jobs.compact.merge import merged
from glue_jobs.compact.parse import drawer
from glue_jobs.compact.tables import event_rows, statistic_rows, transcript_rows
from glue_jobs.compact.write import Segments, event_files, key_files
from glue_jobs.workspace import Workspace
from millrace.lake.application.editions import Current, Editions, names_in
from millrace.lake.domain.archive import FOLDER, MAX_LINE_BYTES
from millrace.lake.domain.edition import (
    EVENTS,
    FAN_IN,
    KEYS,
    PROCESSED,
    STATISTICS,
    TRANSCRIPTS,
    Edition,
    File,
    to_fold,
)
from millrace.lake.domain.edition import QUARANTINE as QUARANTINE_TABLE
from millrace.lake.domain.registry import QUARANTINE, REJECT, Registry
from millrace.ledger.domain.errors import MillraceError, Rejected

NOTHING_NEW, PUBLISHED, OVERTAKEN = "nothing_new", "published", "overtaken"
BROADCAST_ROWS = 4_000_000
MOST_DRAWERS = 1_000
"""A run that needs more of them reads the key index as a whole."""


class RejectedEvent(Rejected):
    """The registry does not know an event's version, and its type has the policy `reject`. Nothing was changed."""


class Inconsistent(MillraceError):
    """Lines went in that did not come out. Nothing was published."""


@dataclass(frozen=True, slots=True)
class CompactionReport:
    outcome: str
    edition: Edition
    more: bool = False
    size: int = 0
    """Bytes of the archive objects that were read."""


@dataclass(frozen=True, slots=True)
class Compact:
    """`batch`: archive objects in one run at most; `more` in the report says that others wait.

    `session` gives Spark for so many bytes of archive objects. It is asked for once there is something to do.
    """

    session: Callable[[int], SparkSession]
    workspace: Workspace
    registry: Registry
    new_run: Callable[[], str]
    clock: Callable[[], int]
    tell: Callable[[str], None] = lambda _: None
    batch: int = 10_000
    fan_in: int = FAN_IN

    def __call__(self) -> CompactionReport:
        editions = Editions(self.workspace.objects)
        current = editions.current()
        new = self._new_objects(current.edition)
        if not new:
            return CompactionReport(NOTHING_NEW, current.edition)
        taken = new[: self.batch]
        size = sum(file.size for file in taken)
        self.tell(f"reading and judging {len(taken)} objects of {len(new)} that are new, {size} bytes")
        spark = self.session(sum(file.size for file in new))
        segments = Segments(spark, self.workspace, self.new_run(), self.tell, self.fan_in)
        judged = Intake(spark, self.workspace, self.registry, self.tell)(taken)
        try:
            self._refuse_rejected(judged)
            edition = self._edition(current, judged, taken, segments)
        finally:
            judged.release()
        if not editions.publish(current, edition):
            return CompactionReport(OVERTAKEN, editions.current().edition, more=True)
        return CompactionReport(PUBLISHED, edition, len(new) > len(taken), size)

    def _new_objects(self, edition: Edition) -> list[File]:
        """Whatever is not processed yet, wherever its name sorts: late objects are new ones."""
        done = {name for file in edition.files(PROCESSED) for name in names_in(self.workspace.objects, file)}
        listed = self.workspace.objects.list(FOLDER)
        return [File(one.name, one.size) for one in listed if one.name not in done and not one.name.endswith("/")]

    def _refuse_rejected(self, judged: Judged) -> None:
        event = judged.rejected()
        if event is None:
            return
        where = ("event_type", "event_version", "ledger", "sequence_position", "idempotency_key", "object")
        named = ", ".join(f"{name} {event[name]}" for name in where)
        raise RejectedEvent(
            f"The registry rejects {judged.count(REJECT)} events, the first: {named}. Nothing was changed.",
            **{name: event[name] for name in where},
        )

    def _edition(self, current: Current, judged: Judged, taken: Sequence[File], segments: Segments) -> Edition:
        before = current.edition
        after = replace(
            before, number=before.number + 1, run=segments.run, created_ms=self.clock(), tables=dict(before.tables)
        )
        fresh = 0
        if judged.lines is not None and judged.count(ACCEPTED):
            after, fresh = self._with_events(after, judged, segments)
        after = self._with_quarantine(after, judged, segments)
        after = self._with_processed(after, [file.name for file in taken], segments)
        quarantined = judged.count(QUARANTINE)
        counts = {
            "objects": len(taken),
            "lines": judged.total,
            "new": fresh,
            "duplicates": judged.total - fresh - quarantined,
            "quarantined": quarantined,
            "objects_set_aside": len(judged.set_aside),
        }
        return replace(segments.folded(after), counts=counts)

    def _with_events(self, after: Edition, judged: Judged, segments: Segments) -> tuple[Edition, int]:
        if judged.lines is None:
            return after, 0
        self.tell("looking for events that are published already")
        first = judged.lines.where("first")
        candidates = judged.count(ACCEPTED, first=True)
        published = self._published(after, first, candidates, segments)
        known = published.persist().count() if published is not None else 0
        unknown = first.join(published, "key", "left_anti") if published is not None and known else first
        self.tell(f"writing {candidates - known} events")
        rows = event_rows(unknown)
        events = segments.write(EVENTS, rows, event_files(judged.bytes))
        keyed = unknown.select("key", drawer(F.col("ledger")).alias("drawer"))
        keys = segments.write(KEYS, keyed, key_files(events.rows))
        if not events.rows == keys.rows == candidates - known:
            raise Inconsistent("The run wrote another number of events than it should.", run=segments.run)
        after = after.having(EVENTS, [*after.segments(EVENTS), events])
        after = after.having(KEYS, [*after.segments(KEYS), keys])
        if events.rows:
            # Made of the lines in memory: what was just written is not read again.
            derived = {STATISTICS: statistic_rows(rows)}
            if judged.spoken or (after.segments(TRANSCRIPTS) and not after.merged):
                derived[TRANSCRIPTS] = transcript_rows(rows)
            after = merged(segments, after, derived)
        if published is not None:
            published.unpersist()
        return after, events.rows

    def _published(self, before: Edition, first: DataFrame, candidates: int, segments: Segments) -> DataFrame | None:
        """Which of these keys an earlier run published. Of the narrow index the drawers of their ledgers are read."""
        keys = first.select("key")
        files = tuple(file for segment in before.segments(KEYS) for file in segment.files)
        if not files:
            return None
        wanted = F.broadcast(keys) if candidates <= BROADCAST_ROWS else keys
        index = segments.read(KEYS, files)
        drawers = [row["drawer"] for row in first.select(drawer(F.col("ledger")).alias("drawer")).distinct().collect()]
        if len(drawers) <= MOST_DRAWERS:
            index = index.where(F.col("drawer").isin(drawers) | F.col("drawer").isNull())
        return index.select("key").join(wanted, "key", "left_semi")

    def _with_quarantine(self, after: Edition, judged: Judged, segments: Segments) -> Edition:
        added = []
        aside = judged.count(QUARANTINE)
        if judged.lines is not None and aside:
            self.tell(f"setting {aside} lines aside")
            added.append(segments.write_text(QUARANTINE_TABLE, entries(judged.lines, MAX_LINE_BYTES), aside))
        if judged.set_aside:
            data = json_lines(judged.set_aside)
            added.append(segments.put(f"{QUARANTINE_TABLE}-objects", "objects.gz", data, len(judged.set_aside)))
        return after.having(QUARANTINE_TABLE, [*after.segments(QUARANTINE_TABLE), *added])

    def _with_processed(self, after: Edition, names: list[str], segments: Segments) -> Edition:
        listed = segments.put(PROCESSED, "names.json.gz", _names_gz(names), len(names))
        after = after.having(PROCESSED, [*after.segments(PROCESSED), listed])
        step = 0
        while full := to_fold(after.segments(PROCESSED), self.fan_in):
            step += 1
            together = [
                name for segment in full for file in segment.names for name in names_in(self.workspace.objects, file)
            ]
            merged = segments.put(PROCESSED, f"names-{step}.json.gz", _names_gz(together), len(together))
            kept = [segment for segment in after.segments(PROCESSED) if segment not in full]
            after = after.having(PROCESSED, [*kept, merged])
        return after


def _names_gz(names: Sequence[str]) -> bytes:
    return gzip.compress(json.dumps(names).encode(), mtime=0)
