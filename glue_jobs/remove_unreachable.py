"""Removes files that no reader can reach any more, left by folding, by retention and by runs that died."""

from __future__ import annotations

from itertools import groupby

from glue_jobs.workspace import StagedWorkspace, Workspace
from millrace.lake.application.editions import Editions
from millrace.lake.domain.archive import sortable_time
from millrace.lake.domain.edition import ROOT, Edition

MANIFESTS, RUNS = f"{ROOT}manifests/", f"{ROOT}runs/"


def _number(edition: Edition) -> int:
    return edition.number


def remove_unreachable(workspace: Workspace, now_ms: int, grace_ms: int) -> int:
    """A file goes when no edition that was current within the grace time has it, and its run began before that.

    The grace time must be longer than any run and any query take. Returns how many objects went.
    """
    objects = workspace.objects
    current = Editions(objects).current().edition
    oldest = max(now_ms - grace_ms, 0)
    kept: set[str] = set()
    removed = 0
    manifests = [one.name for one in objects.list(MANIFESTS)]
    editions = [Edition.parse(found.data) for found in map(objects.get, manifests) if found is not None]
    reachable = True
    for number, same in groupby(sorted(editions, key=_number, reverse=True), key=_number):
        # Of several with one number at most one was ever current; which of an older number, only the pointer told.
        young = False
        for edition in same:
            if reachable or edition.manifest == current.manifest:
                kept |= {file for table in edition.tables for file in edition.files(table)} | {edition.manifest}
            young = young or number > current.number or edition.created_ms >= oldest
        # An older number was current until this one came.
        reachable = reachable and young
    for name in [*manifests, *(one.name for one in objects.list(RUNS))]:
        run = name.removeprefix(RUNS).partition("/")[0] if name.startswith(RUNS) else name.rpartition("/")[2][11:]
        if name not in kept and run[:10] < sortable_time(oldest):
            objects.delete(name)
            removed += 1
    if isinstance(workspace, StagedWorkspace):
        workspace.forget([segment.run for table in current.tables for segment in current.segments(table)])
    return removed
