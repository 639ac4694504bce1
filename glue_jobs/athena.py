"""For Athena: per table one object that lists the current snapshot's files, in Hive's symlink format."""

from __future__ import annotations

from glue_jobs.columns import PUBLISHED
from glue_jobs.workspace import Workspace
from millrace.lake.application.snapshots import Snapshots
from millrace.lake.domain.snapshot import ROOT

TRIES = 10


def refresh(workspace: Workspace) -> None:
    """Derived from the pointer, so any run may do it again; the list never goes back to an older snapshot."""
    for table in PUBLISHED:
        for _ in range(TRIES):
            if _refreshed(workspace, table):
                break


def list_name(table: str) -> str:
    return f"{ROOT}athena/{table}/files.txt"


def _refreshed(workspace: Workspace, table: str) -> bool:
    name, objects = list_name(table), workspace.objects
    # The list is looked at before the pointer: whoever swaps it later has seen a snapshot at least as new.
    listed = objects.get(name)
    snapshot = Snapshots(objects).current().snapshot
    text = "".join(f"{workspace.root}{file}\n" for file in snapshot.files(table)).encode()
    if listed is None:
        return objects.put(name, text)
    return listed.data == text or objects.swap(name, text, listed.tag)
