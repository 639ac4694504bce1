"""Sweep: remove files that no reader can reach any more, left by folding, by retention and by runs that died."""

from __future__ import annotations

from glue_jobs.workspace import StagedWorkspace, Workspace
from millrace.application.snapshots import Snapshots
from millrace.domain.archive import sortable_time
from millrace.domain.snapshot import ROOT, Snapshot

MANIFESTS, RUNS = f"{ROOT}manifests/", f"{ROOT}runs/"


def sweep(workspace: Workspace, now_ms: int, grace_ms: int) -> int:
    """A file goes when no snapshot that was current within the grace time has it, and its run began before that.

    The grace time must be longer than any run and any query take. Returns how many objects went.
    """
    objects = workspace.objects
    current = Snapshots(objects).current().snapshot
    oldest = max(now_ms - grace_ms, 0)
    kept: set[str] = set()
    removed = 0
    newest_first = sorted((one.name for one in objects.list(MANIFESTS)), reverse=True)
    reachable = True
    for name in newest_first:
        found = objects.get(name)
        if found is None:
            continue
        snapshot = Snapshot.parse(found.data)
        if reachable or name == current.manifest:
            kept |= {file for table in snapshot.tables for file in snapshot.files(table)} | {name}
            # An older one was current until this one came.
            reachable = snapshot.number > current.number or snapshot.created_ms >= oldest
    for name in [*newest_first, *(one.name for one in objects.list(RUNS))]:
        run = name.removeprefix(RUNS).partition("/")[0] if name.startswith(RUNS) else name.rpartition("/")[2][11:]
        if name not in kept and run[:10] < sortable_time(oldest):
            objects.delete(name)
            removed += 1
    if isinstance(workspace, StagedWorkspace):
        workspace.forget([segment.run for table in current.tables for segment in current.segments(table)])
    return removed
