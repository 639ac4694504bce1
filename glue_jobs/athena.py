"""For Athena: per table one object that lists the current edition's files, in Hive's symlink format."""

from __future__ import annotations

from glue_jobs.workspace import Workspace
from millrace.lake.application.editions import Editions
from millrace.lake.domain.edition import PUBLISHED, ROOT

TRIES = 10


def refresh(workspace: Workspace) -> None:
    """Derived from the pointer, so any run may do it again; the list never goes back to an older edition."""
    for table in PUBLISHED:
        for _ in range(TRIES):
            if _refreshed(workspace, table):
                break


def list_name(table: str) -> str:
    return f"{ROOT}athena/{table}/files.txt"


def _refreshed(workspace: Workspace, table: str) -> bool:
    name, objects = list_name(table), workspace.objects
    # The list is looked at before the pointer: whoever swaps it later has seen an edition at least as new.
    listed = objects.get(name)
    edition = Editions(objects).current().edition
    text = "".join(f"{workspace.root}{file}\n" for file in edition.files(table)).encode()
    if listed is None:
        return objects.put(name, text)
    return listed.data == text or objects.swap(name, text, listed.tag)
