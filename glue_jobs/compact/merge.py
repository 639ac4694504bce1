"""Merge: add rows to a table that has one row for each key, so that no reader has to add segments up (C9).

Only files that hold one of the new keys are written again, without these keys; the new segment has the keys' new rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from glue_jobs.compact.write import COMBINED, FILE_BYTES, Segments
from millrace.lake.domain.edition import ROOT, STATISTICS, TRANSCRIPTS, Edition, File, Segment

KEYS_OF: Mapping[str, Sequence[str]] = {
    TRANSCRIPTS: ("ledger", "utterance_id"),
    STATISTICS: ("ledger", "contract", "tenant", "day"),
}


def merged(segments: Segments, edition: Edition, made: Mapping[str, DataFrame]) -> Edition:
    """The edition with these rows in its tables. One that an older version made is merged as a whole, once."""
    for table, rows in made.items():
        segments.tell(f"writing {table}")
        if not edition.segments(table):
            edition = edition.having(table, _filled(segments.write(table, rows, 1)))
            continue
        rows.persist()
        try:
            edition = edition.having(table, _with(segments, edition, table, rows))
        finally:
            rows.unpersist()
    return replace(edition, merged=True)


def _with(segments: Segments, edition: Edition, table: str, made: DataFrame) -> list[Segment]:
    before = edition.segments(table)
    files = [file for segment in before for file in segment.files]
    found = _found(segments, table, files, made) if edition.merged else dict.fromkeys((file.name for file in files), 0)
    touched = [file for file in files if file.name in found]
    if not touched:
        return [*before, *_filled(segments.write(table, made, 1))]
    keys, old = made.select(*KEYS_OF[table]), segments.read(table, touched)
    hit = old.join(keys, [*KEYS_OF[table]], "left_semi").select(*made.columns) if edition.merged else old
    new = segments.write(table, COMBINED[table](hit.unionByName(made)), 1)
    if not edition.merged:
        return [*_filled(new)]
    kept = [_without(segment, found) for segment in before]
    rest = old.join(keys, [*KEYS_OF[table]], "left_anti").select(*made.columns)
    size = -(-sum(file.size for file in touched) // FILE_BYTES)
    return [*kept, *_filled(segments.write(table, rest, size, "-rest")), *_filled(new)]


def _found(segments: Segments, table: str, files: Sequence[File], made: DataFrame) -> dict[str, int]:
    """The files that hold a key of these rows, with all their rows counted."""
    held = segments.read(table, files).select(
        *KEYS_OF[table], F.regexp_extract(F.col("_metadata.file_path"), f"({ROOT}runs/.*)$", 1).alias("file")
    )
    keys = made.select(*KEYS_OF[table], F.lit(1).alias("hit"))
    counted = held.join(keys, [*KEYS_OF[table]], "left").groupBy("file")
    counts = counted.agg(F.count("*").alias("rows"), F.count("hit").alias("hits")).where("hits > 0")
    return {row["file"]: row["rows"] for row in counts.collect()}


def _without(segment: Segment, found: Mapping[str, int]) -> Segment:
    left = tuple(file for file in segment.files if file.name not in found)
    return Segment(segment.run, segment.rows - sum(found.get(name, 0) for name in segment.names), left)


def _filled(segment: Segment) -> Iterable[Segment]:
    """Spark writes a file even if there is no row."""
    return [segment] if segment.rows else []
