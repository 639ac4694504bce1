"""Show tables: what is published, by which runs, and what waits for the next one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import Any

from millrace.lake.application.editions import Editions, names_in
from millrace.lake.application.quarantine import REDRIVEN
from millrace.lake.domain.archive import FOLDER, sortable_time, time_in
from millrace.lake.domain.edition import PROCESSED, PUBLISHED, QUARANTINE, ROOT, Edition
from millrace.lake.domain.hub_access import runs_the_hub
from millrace.lake.ports.objects import Objects
from millrace.ledger.domain.access import OPERATOR, Identity

MOST_RUNS = 10
MOST_WAITING = 1_000
"""One listing of a bucket has so many."""
MOST_MARKERS = 100
MOST_LIST_BYTES = 4_000_000
"""A longer list of processed objects is not read."""
OBJECTS_FILE = "objects.gz"
"""In which compaction lists whole objects that it set aside."""

Section = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ShowTables:
    objects: Objects

    def __call__(self, identity: Identity) -> Section:
        """Numbers of the whole hub are for those who run it; for others they are None."""
        identity.require(OPERATOR)
        edition, whole = Editions(self.objects).current().edition, runs_the_hub(identity)
        return {
            "edition": edition.number,
            "run": edition.run or None,
            "published_ms": edition.created_ms if edition.number else None,
            "tables": _tables(edition) if whole else None,
            "runs": [_run_json(one, whole=whole) for one in self._runs(edition)],
            "waiting": self._waiting(edition) if whole else None,
            "quarantine": self._quarantine(edition) if whole else None,
        }

    def _runs(self, current: Edition) -> list[Edition]:
        """The last ones whose manifests are still there. One that was overtaken has nothing in the current edition."""
        if not current.number:
            return []
        known = {segment.run for table in current.tables for segment in current.segments(table)} | {current.run}
        runs = [current]
        for number in range(current.number - 1, max(0, current.number - MOST_RUNS), -1):
            listed = [one.name for one in islice(self.objects.list(f"{ROOT}manifests/{number:010}-"), MOST_RUNS)]
            stored = [found for found in map(self.objects.get, listed) if found is not None]
            made = [Edition.parse(found.data) for found in stored]
            runs += [one for one in made if one.run in known or len(made) == 1][:1]
        return runs

    def _waiting(self, edition: Edition) -> Section:
        """Archive objects after the last one that was processed. One that came late and sorts before it is not among
        them; compaction takes it all the same."""
        listed = [*islice(self.objects.list(FOLDER, self._checkpoint(edition)), MOST_WAITING + 1)]
        waiting = [one for one in listed if not one.name.endswith("/")]
        return {
            "objects": len(waiting[:MOST_WAITING]),
            "bytes": sum(one.size for one in waiting[:MOST_WAITING]),
            "oldest_ms": time_in(waiting[0].name) if waiting else None,
            "more": len(listed) > MOST_WAITING,
        }

    def _checkpoint(self, edition: Edition) -> str:
        segments = edition.segments(PROCESSED)
        if not segments:
            return ""
        files = segments[-1].files
        if sum(file.size for file in files) > MOST_LIST_BYTES:
            return FOLDER + sortable_time(edition.created_ms)
        return max((name for file in files for name in names_in(self.objects, file.name)), default="")

    def _quarantine(self, edition: Edition) -> Section:
        """What the manifest says of it; its files are not read."""
        segments = edition.segments(QUARANTINE)
        whole = [one for one in segments if any(name.endswith(OBJECTS_FILE) for name in one.names)]
        notes = [self.objects.get(one.name) for one in islice(self.objects.list(REDRIVEN), MOST_MARKERS)]
        return {
            "lines": sum(one.rows for one in segments if one not in whole),
            "objects": sum(one.rows for one in whole),
            "redriven": sum(len(json.loads(note.data)["ids"]) for note in notes if note is not None),
        }


def _tables(edition: Edition) -> list[Section]:
    return [
        {
            "table": table,
            "rows": edition.rows(table),
            "files": len(edition.files(table)),
            "bytes": sum(file.size for segment in edition.segments(table) for file in segment.files),
        }
        for table in PUBLISHED
    ]


def _run_json(edition: Edition, *, whole: bool) -> Section:
    return {
        "edition": edition.number,
        "run": edition.run,
        "published_ms": edition.created_ms,
        "counts": dict(edition.counts) if whole else None,
    }
