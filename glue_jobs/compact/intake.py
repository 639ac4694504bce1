"""Intake: read new archive objects into one DataFrame, a row per line. An object that cannot be read is set aside."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from glue_jobs.compact.gate import ACCEPTED, gate
from glue_jobs.compact.parse import archive_object, parse
from glue_jobs.compact.tables import first_of_each_key, is_spoken
from glue_jobs.workspace import Workspace
from millrace.lake.domain.archive import CORRUPT_OBJECT, EMPTY_OBJECT, FOLDER, FOREIGN_OBJECT, SUFFIX
from millrace.lake.domain.edition import File
from millrace.lake.domain.registry import QUARANTINE, REJECT, Registry
from millrace.lake.ports.objects import Objects

CHUNK = 1 << 20
_ARCHIVE_OBJECT = re.compile(f"{FOLDER}[0-9A-Za-z][0-9A-Za-z-]*{re.escape(SUFFIX)}")


@dataclass(frozen=True, slots=True)
class Judged:
    """`lines` has `status`, `reason` and `first`, and is persisted; None if no object could be read."""

    lines: DataFrame | None = None
    tallies: Sequence[Row] = ()
    set_aside: Sequence[dict[str, object]] = field(default_factory=list)

    def count(self, status: str, *, first: bool | None = None) -> int:
        return sum(row["lines"] for row in self.tallies if row["status"] == status and first in (None, row["first"]))

    @property
    def total(self) -> int:
        return sum(row["lines"] for row in self.tallies)

    @property
    def bytes(self) -> int:
        return sum(row["bytes"] for row in self.tallies if row["status"] == ACCEPTED)

    @property
    def spoken(self) -> int:
        """How many of them may tell an utterance."""
        return sum(row["spoken"] for row in self.tallies if row["first"])

    def rejected(self) -> Row | None:
        """One event that the registry wants the run to fail for, the same one each time."""
        if self.lines is None or not self.count(REJECT):
            return None
        order = ("object", "ledger", "sequence_position", "idempotency_key")
        return self.lines.where(F.col("status") == REJECT).orderBy(*order).first()

    def release(self) -> None:
        if self.lines is not None:
            self.lines.unpersist()


@dataclass(frozen=True, slots=True)
class Intake:
    spark: SparkSession
    workspace: Workspace
    registry: Registry
    tell: Callable[[str], None]

    def __call__(self, files: Sequence[File]) -> Judged:
        set_aside = [entry(file.name, FOREIGN_OBJECT) for file in files if not is_archive_object(file.name)]
        set_aside += [
            entry(file.name, EMPTY_OBJECT) for file in files if is_archive_object(file.name) and not file.size
        ]
        readable = [file for file in files if is_archive_object(file.name) and file.size]
        while readable:
            lines = self._judged(readable)
            try:
                tallies = tally(lines).collect()
            except (Py4JJavaError, PySparkException):
                lines.unpersist()
                broken = {file.name for file in readable if not _can_be_read(self.workspace.objects, file.name)}
                if not broken:
                    raise
                self.tell(f"{len(broken)} objects cannot be read and are set aside")
                set_aside += [entry(name, CORRUPT_OBJECT) for name in sorted(broken)]
                readable = [file for file in readable if file.name not in broken]
            else:
                with_lines = {row["object"] for row in tallies}
                set_aside += [entry(file.name, EMPTY_OBJECT) for file in readable if file.name not in with_lines]
                return Judged(lines, tallies, set_aside)
        return Judged(set_aside=set_aside)

    def _judged(self, files: Sequence[File]) -> DataFrame:
        text = self.spark.read.option("lineSep", "\n").text(self.workspace.paths(files))
        lines = text.select(F.col("value").alias("line"), archive_object().alias("object"))
        return first_of_each_key(gate(parse(lines), self.registry)).persist()


def tally(lines: DataFrame) -> DataFrame:
    counted = lines.groupBy("object", "status", "first")
    spoken = F.count_if(F.coalesce(is_spoken(), F.lit(False)))
    return counted.agg(F.count("*").alias("lines"), F.sum("bytes").alias("bytes"), spoken.alias("spoken"))


def is_archive_object(name: str) -> bool:
    """Only plain names: Spark gives others back in another spelling, or passes over them."""
    return _ARCHIVE_OBJECT.fullmatch(name) is not None


def entry(name: str, reason: str) -> dict[str, object]:
    """A whole object in quarantine."""
    return {"id": hashlib.sha256(f"{name}\n{reason}".encode()).hexdigest()[:32], "reason": reason, "object": name}


def entries(lines: DataFrame, most: int) -> DataFrame:
    """Lines in quarantine as JSON texts. A line of more than `most` bytes is not copied: its object still has it."""
    digest = F.sha2("line", 256)
    return lines.where(F.col("status") == QUARANTINE).select(
        F.to_json(
            F.struct(
                F.substring(F.sha2(F.concat_ws("\n", "object", "line"), 256), 1, 32).alias("id"),
                "reason",
                "field",
                "object",
                "ledger",
                "event_type",
                "event_version",
                "idempotency_key",
                "sequence_position",
                "bytes",
                digest.alias("sha256"),
                F.when(F.col("bytes") <= most, F.col("line")).alias("line"),
            )
        ).alias("value")
    )


def json_lines(entries: Sequence[dict[str, object]]) -> bytes:
    return gzip.compress("".join(json.dumps(one) + "\n" for one in entries).encode(), mtime=0)


def _can_be_read(objects: Objects, name: str) -> bool:
    found = objects.get(name)
    if found is None:
        return True
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(found.data)) as file:
            while file.read(CHUNK):
                pass
    except (OSError, EOFError, zlib.error):
        return False
    return True
