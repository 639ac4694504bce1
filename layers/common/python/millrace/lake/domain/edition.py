"""Editions of the tables: their files at one moment. A manifest lists the files, the pointer names the current one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

ROOT = "lake/"
POINTER = ROOT + "pointer.json"
REGISTRY = ROOT + "registry.json"
EVENTS, KEYS, TRANSCRIPTS, STATISTICS = "events", "keys", "transcripts", "statistics"
QUARANTINE, PROCESSED, PRUNED = "quarantine", "processed", "pruned"
PUBLISHED = (EVENTS, TRANSCRIPTS, STATISTICS)
"""The tables that are for readers; the others are the jobs' own."""
DATABASE = "millrace"
"""Of a catalog, with these tables in it, unless a deployment names another."""
FAN_IN = 8
"""Segments of a tier that are folded into one; tiers are powers of it, in rows."""


@dataclass(frozen=True, slots=True)
class File:
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Segment:
    """What one run added to a table, in few files that never change."""

    run: str
    rows: int
    files: tuple[File, ...]

    @property
    def names(self) -> list[str]:
        return [file.name for file in self.files]


@dataclass(frozen=True, slots=True)
class Edition:
    """`doomed`: archive objects whose events are all pruned; whoever runs next may remove them.

    `merged`: transcripts have one row for each utterance, and statistics one for each day, over all their segments.
    """

    number: int = 0
    run: str = ""
    created_ms: int = 0
    tables: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    doomed: tuple[str, ...] = ()
    merged: bool = False

    @property
    def manifest(self) -> str:
        return f"{ROOT}manifests/{self.number:010}-{self.run}.json"

    def segments(self, table: str) -> tuple[Segment, ...]:
        return self.tables.get(table, ())

    def files(self, table: str) -> list[str]:
        return [name for segment in self.segments(table) for name in segment.names]

    def rows(self, table: str) -> int:
        return sum(segment.rows for segment in self.segments(table))

    def having(self, table: str, segments: Iterable[Segment]) -> Edition:
        """The same with other segments of a table; empty ones are left out."""
        kept = tuple(segment for segment in segments if segment.files)
        return replace(self, tables={**self.tables, table: kept})

    def to_json(self) -> bytes:
        content = {
            "number": self.number,
            "run": self.run,
            "created_ms": self.created_ms,
            "counts": dict(self.counts),
            "tables": {name: [_segment_json(one) for one in self.tables[name]] for name in sorted(self.tables)},
            "doomed": list(self.doomed),
            "merged": self.merged,
        }
        return json.dumps(content, indent=1).encode()

    @classmethod
    def parse(cls, data: bytes) -> Edition:
        content = json.loads(data)
        tables = {name: tuple(map(_segment, segments)) for name, segments in content["tables"].items()}
        return cls(
            content["number"],
            content["run"],
            content["created_ms"],
            tables,
            content["counts"],
            tuple(content["doomed"]),
            content.get("merged", False),
        )


def run_folder(run: str, table: str) -> str:
    return f"{ROOT}runs/{run}/{table}/"


def to_fold(segments: Sequence[Segment], fan_in: int = FAN_IN) -> list[Segment]:
    """The segments to make one of now: the lowest tier that is full. Each row is so rewritten once per tier."""
    tiers: dict[int, list[Segment]] = {}
    for segment in segments:
        tier = int(math.log(max(segment.rows, 1), fan_in) + 1e-9)
        tiers.setdefault(tier, []).append(segment)
    return next((tiers[tier] for tier in sorted(tiers) if len(tiers[tier]) >= fan_in), [])


def _segment_json(segment: Segment) -> dict[str, Any]:
    files = [{"name": file.name, "size": file.size} for file in segment.files]
    return {"run": segment.run, "rows": segment.rows, "files": files}


def _segment(content: Mapping[str, Any]) -> Segment:
    files = tuple(File(file["name"], file["size"]) for file in content["files"])
    return Segment(content["run"], content["rows"], files)
