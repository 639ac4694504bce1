"""Retain: prune what nobody needs any more from the log, the tables and the archive (C8), or only list it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from glue_jobs.compact.write import FILE_BYTES, Segments, read_files
from glue_jobs.literal import literal_rows
from glue_jobs.retain import transforms
from glue_jobs.retain.copies import Copies, ranges_of, without_entries
from glue_jobs.workspace import Workspace
from millrace.lake.application.editions import Current, Editions
from millrace.lake.domain.edition import EVENTS, FAN_IN, PRUNED, ROOT, Edition, File, Segment
from millrace.lake.domain.retention import RetentionRequest
from millrace.ledger.application.prune import Pruned
from millrace.ledger.domain.ranges import Ranges

NARROW = "ledger string, position bigint, partitions array<string>, archive_object string, file string"
DRY, DONE, OVERTAKEN, NOTHING = "dry_run", "pruned", "overtaken", "nothing_to_prune"

PruneLog = Callable[[str, Ranges], Pruned]
"""Given a ledger's name and the positions that may go, empties them in the log and says whether all of them are empty.

It may be called again with the same positions, and must itself stop at the cursors of the log's consumers.
"""


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """By ledger the positions that may go, and what then holds nothing that anybody keeps: archive objects, and lines
    in quarantine by their ids."""

    ranges: Mapping[str, Ranges]
    objects: tuple[str, ...]
    quarantined: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ranges or self.objects or self.quarantined)

    @property
    def events(self) -> int:
        return sum(ranges.count for ranges in self.ranges.values())

    def to_json(self, request: RetentionRequest, now_ms: int) -> bytes:
        ledgers = {
            ledger: {"events": ranges.count, "ranges": [list(span) for span in ranges]}
            for ledger, ranges in sorted(self.ranges.items())
        }
        content = {
            "planned_ms": now_ms,
            "events": self.events,
            "ledgers": ledgers,
            "archive_objects": list(self.objects),
            "quarantined": list(self.quarantined),
            "let_go": {ledger: asdict(release) for ledger, release in sorted(request.ledgers.items())},
        }
        return json.dumps(content).encode()


@dataclass(frozen=True, slots=True)
class RemovalReport:
    outcome: str
    plan: RemovalPlan
    manifest: str | None = None
    bodies: int = 0
    unfinished: tuple[str, ...] = ()
    """Ledgers whose log still has something that was to go; of these nothing else went either."""


@dataclass(frozen=True, slots=True)
class Retain:
    """Without `prune_log` it only looks: a dry run, which changes nothing."""

    spark: SparkSession
    workspace: Workspace
    new_run: Callable[[], str]
    clock: Callable[[], int]
    prune_log: PruneLog | None = None
    tell: Callable[[str], None] = lambda _: None
    fan_in: int = FAN_IN

    def __call__(self, request: RetentionRequest) -> RemovalReport:
        current = Editions(self.workspace.objects).current()
        if self.prune_log is not None:
            self._remove_doomed(current.edition)
        files = [file for segment in current.edition.segments(EVENTS) for file in segment.files]
        if not current.edition.number or not request.ledgers:
            return RemovalReport(DRY if self.prune_log is None else NOTHING, RemovalPlan({}, ()))
        events = self._events(files)
        going = self._may_go(events, current.edition, request).persist()
        try:
            plan = self._plan(events, going, current.edition)
            if self.prune_log is None:
                return RemovalReport(DRY, plan)
            if not plan:
                return RemovalReport(NOTHING, plan)
            return self._carried_out(request, plan, events, going, current)
        finally:
            going.unpersist()

    def _events(self, files: list[File]) -> DataFrame:
        """Narrow rows with the file they are in; what has no position is never pruned by one."""
        if not files:
            return literal_rows(self.spark, [], NARROW)
        rows = read_files(self.spark, self.workspace, EVENTS, files)
        file = F.regexp_extract(F.col("_metadata.file_path"), f"({ROOT}runs/.*)$", 1)
        position = F.col("sequence_position").alias("position")
        return rows.select("ledger", position, "partitions", "archive_object", file.alias("file"))

    def _may_go(self, events: DataFrame, edition: Edition, request: RetentionRequest) -> DataFrame:
        self.tell("looking for events that nobody needs")
        releases = transforms.release_rows(self.spark, request)
        asked = F.broadcast(releases.select("ledger"))
        placed = events.where("position is not null").join(asked, "ledger", "left_semi")
        covered = transforms.covered_rows(placed, self._pruned(edition))
        return transforms.may_go_rows(placed, releases, transforms.mark_rows(self.spark, request), covered)

    def _pruned(self, edition: Edition) -> DataFrame:
        """(ledger, first, last): what went before."""
        files = [file for segment in edition.segments(PRUNED) for file in segment.files]
        return read_files(self.spark, self.workspace, PRUNED, files)

    def _plan(self, events: DataFrame, going: DataFrame, edition: Edition) -> RemovalPlan:
        found: dict[str, list[tuple[int, int]]] = {}
        for row in transforms.spans(going).toLocalIterator():
            found.setdefault(row["ledger"], []).append((row["first"], row["last"]))
        touched = going.select("archive_object").distinct()
        staying = (
            events.join(F.broadcast(touched), "archive_object", "left_semi")
            .join(going.select("ledger", "position"), ["ledger", "position"], "left_anti")
            .select("archive_object")
            .distinct()
        )
        empty = touched.join(staying, "archive_object", "left_anti")
        ranges = {ledger: Ranges.joined(spans) for ledger, spans in found.items()}
        objects, entries = self._copies(
            events, going, {row["archive_object"] for row in empty.toLocalIterator()}, ranges, edition
        )
        return RemovalPlan(ranges, tuple(sorted(objects - set(edition.doomed))), tuple(sorted(entries)))

    def _copies(
        self,
        events: DataFrame,
        going: DataFrame,
        empty: set[str],
        ranges: Mapping[str, Ranges],
        edition: Edition,
    ) -> tuple[set[str], set[str]]:
        """The archive objects, and the lines in quarantine, that hold nothing but what was let go or goes now."""
        copies, pruned = Copies.of(self.spark, self.workspace, edition), self._pruned(edition)
        named = {one.ledger for one in copies.entries if one.ledger}
        before = ranges_of(pruned, named) if named else {}
        gone = {ledger: Ranges.joined([*before.get(ledger, []), *ranges.get(ledger, Ranges())]) for ledger in named}
        everything = pruned.unionByName(transforms.spans(going))
        doomed = (empty | copies.without_rows(events, everything)) - copies.awaited(gone)
        free = copies.set_free(gone, doomed)
        # An object that could not be read goes with its entry.
        return doomed | {one.object for one in free if one.sha256 is None}, {one.id for one in free}

    def _carried_out(
        self, request: RetentionRequest, plan: RemovalPlan, events: DataFrame, going: DataFrame, current: Current
    ) -> RemovalReport:
        """First the record of what goes, then the log, then the tables in one step, then the archive's objects.

        What the log does not let go yet stays in the tables and the archive too: the next run plans it again.
        """
        run = self.new_run()
        manifest = f"{ROOT}retention/{run}.json.gz"
        self.workspace.objects.put(manifest, gzip.compress(plan.to_json(request, self.clock()), mtime=0))
        bodies, unfinished = self._emptied(plan)
        if unfinished:
            going = going.where(~F.col("ledger").isin(*unfinished))
            plan = self._plan(events, going, current.edition)
        if not plan:
            return RemovalReport(NOTHING, plan, manifest, bodies, unfinished)
        segments = Segments(self.spark, self.workspace, run, self.tell, self.fan_in)
        edition = self._without(plan, events, going, current.edition, segments)
        if not Editions(self.workspace.objects).publish(current, edition):
            return RemovalReport(OVERTAKEN, plan, manifest, bodies, unfinished)
        self._remove_doomed(edition)
        return RemovalReport(DONE, plan, manifest, bodies, unfinished)

    def _emptied(self, plan: RemovalPlan) -> tuple[int, tuple[str, ...]]:
        """How many bodies went from the log, and the ledgers where some that should have are left."""
        bodies, unfinished = 0, []
        for ledger, ranges in plan.ranges.items():
            self.tell(f"emptying {ranges.count} positions of {ledger}")
            pruned = self.prune_log(ledger, ranges) if self.prune_log else Pruned(0, complete=False)
            bodies += pruned.removed
            unfinished += [] if pruned.complete else [ledger]
        return bodies, tuple(unfinished)

    def _without(
        self, plan: RemovalPlan, events: DataFrame, going: DataFrame, before: Edition, segments: Segments
    ) -> Edition:
        """Only files that lose something are written anew; those that lose everything are dropped."""
        counts = events.groupBy("file").count().join(going.groupBy("file").agg(F.count("*").alias("going")), "file")
        touched = {row["file"]: (row["count"], row["going"]) for row in counts.collect()}
        kept, again = [], []
        for segment in before.segments(EVENTS):
            left = tuple(file for file in segment.files if file.name not in touched)
            again += [file for file in segment.files if file.name in touched and len(set(touched[file.name])) == 2]
            lost = sum(touched[file.name][0] for file in segment.files if file.name in touched)
            kept.append(Segment(segment.run, segment.rows - lost, left))
        if again:
            self.tell(f"writing {len(again)} files anew")
            rows = read_files(self.spark, self.workspace, EVENTS, again)
            gone = going.select("ledger", F.col("position").alias("sequence_position"))
            rest = rows.join(gone, ["ledger", "sequence_position"], "left_anti").select(*rows.columns)
            kept.append(segments.write(EVENTS, rest, -(-sum(file.size for file in again) // FILE_BYTES)))
        pruned = [*before.segments(PRUNED)]
        if plan.ranges:
            pruned.append(segments.write(PRUNED, transforms.spans(going), 1))
        after = replace(before, number=before.number + 1, run=segments.run, created_ms=self.clock())
        after = after.having(EVENTS, kept).having(PRUNED, pruned)
        if plan.quarantined:
            after = without_entries(after, plan.quarantined, segments)
        # Those that were doomed before have been removed by now.
        return replace(segments.folded(after), counts={"pruned": plan.events}, doomed=plan.objects)

    def _remove_doomed(self, edition: Edition) -> None:
        """Named in the edition first, so that a run that dies here is finished by the next."""
        for name in edition.doomed:
            self.workspace.objects.delete(name)
