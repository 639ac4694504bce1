"""Which metadata files of an Iceberg table nobody can reach any more: of forgotten snapshots, of commits that died."""

from __future__ import annotations

import json
import re

from pyiceberg.table import Table

from millrace.lake.ports.objects import Objects

TIMED = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
METADATA = ".metadata.json"


def unreachable(table: Table, objects: Objects, folder: str, root: str, before_ms: int) -> list[str]:
    """Objects of the folder that the table does not name and that are older than this time."""
    kept = _named(table)
    unnamed = (one.name for one in objects.list(folder) if root + one.name not in kept)
    return [name for name in unnamed if _made_ms(objects, name) < before_ms]


def _named(table: Table) -> set[str]:
    named = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    for snapshot in table.snapshots():
        named.add(snapshot.manifest_list)
        named.update(manifest.manifest_path for manifest in snapshot.manifests(table.io))
    return named


def _made_ms(objects: Objects, name: str) -> float:
    """When it was made, as far as it tells; what does not tell is kept."""
    timed = TIMED.search(name)
    if timed:
        return int(timed[1] + timed[2], 16)
    found = objects.get(name) if name.endswith(METADATA) else None
    try:
        made: float = json.loads(found.data)["last-updated-ms"] if found else float("inf")
    except ValueError:
        # In a directory a writer that dies leaves half of it, and one that lives may have written no more yet.
        return float("inf")
    return made
