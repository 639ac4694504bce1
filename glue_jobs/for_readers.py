"""For readers: what every job does after it published. It is all derived from the pointer, so any run may repeat it."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from glue_jobs import arguments
from glue_jobs.athena import refresh
from glue_jobs.columns import TABLES
from glue_jobs.remove_unreachable import remove_unreachable
from glue_jobs.store import located
from glue_jobs.workspace import Workspace
from millrace.lake.application.follow_edition import FollowEdition


def serve_readers(asked: argparse.Namespace, workspace: Workspace, tell: Callable[[str], None] = arguments.tell) -> int:
    """Bring the lists for Athena and the Iceberg tables to the current edition; then remove what nobody can reach.

    In this order: a file goes only after no Iceberg table shows it. Returns how many objects went.
    """
    # A job that has nothing to publish yet, or fails, need not wait for this library.
    from millrace.lake.adapters.iceberg_catalog import iceberg_tables  # noqa: PLC0415

    refresh(workspace)
    grace_ms = int(asked.grace_hours * 3_600_000)
    store, settings = located(asked.store)
    with iceberg_tables(store, workspace.objects, TABLES, asked.database, **settings) as tables:
        follow = FollowEdition(workspace.objects, tables, tell)
        follow()
        forgotten = follow.forget(max(arguments.now_ms() - grace_ms, 0))
    return forgotten + remove_unreachable(workspace, arguments.now_ms(), grace_ms)
