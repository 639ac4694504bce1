"""`millrace sync migrate`: copy what old queues and journals still hold into the journal."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column, Table

from millrace_client.commands.journal_options import Home, Token, plainly, session_of
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import err, out
from millrace_client.errors import Usage
from millrace_client.journal.lock import drain_lock
from millrace_client.journal.migrate import GONE, UNKNOWN, Migrate, Migrated, SourceReport
from millrace_client.journal.migration_ports import Imports
from millrace_client.journal.old_queues import OldQueues
from millrace_client.journal.routed_imports import routed_imports
from millrace_client.journal.session import JournalSession


class Keep(StrEnum):
    JOURNAL = "journal"
    SOURCE = "source"


@plainly
def migrate(
    ctx: typer.Context,
    clean: Annotated[
        bool, typer.Option("--clean", help="Then delete from the sources what the journal has; never body uploads.")
    ] = False,
    resolve: Annotated[str | None, typer.Option(help="Settle this event's conflict instead of migrating.")] = None,
    keep: Annotated[Keep | None, typer.Option(help="Which content stays, with --resolve.")] = None,
    source: Annotated[str | None, typer.Option(help="Which source, if several disagree with the journal.")] = None,
    token: Token = None,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """
    Import queue.db, every queues/queue-<digest>.db and every event_journal/journal-*.db; as often as you like.

    The sources are only read. One that is locked or corrupt is reported, and the others go on. An event that the
    journal has with other content is a conflict: both contents are kept, and the exit code is 1 until it is settled.
    With a token, a queue of its server, user and team is theirs; all others are nobody's until somebody delivers.

    Examples:

      millrace sync migrate

      millrace sync conflicts order-17-paid

      millrace sync migrate --resolve order-17-paid --keep journal

      millrace sync migrate --clean
    """
    if (resolve is None) != (keep is None):
        raise Usage("--resolve and --keep go together.")
    session = session_of(ctx, home, token, lenient=True)
    with drain_lock(session.config.lock_path), routed_imports(session) as imports:
        if resolve is not None and keep is not None:
            settled = imports.resolve(resolve, keep.value, source, session.config.families, session.around.clock())
            print(json.dumps({"resolved": settled})) if as_json else out.print(f"{settled} settled.")
            return
        migrated = _run(session, imports, clean)
    if as_json:
        print(json.dumps(_as_json(migrated)))
    else:
        _show(migrated)
    if not migrated.ok:
        raise typer.Exit(1)


def _run(session: JournalSession, imports: Imports, clean: bool) -> Migrated:
    queues = OldQueues(session.config.home)
    columns = (TextColumn("migrating"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        bar = progress.add_task("migrating", total=len(list(queues.find())))
        run = Migrate(queues, imports, session.config.families, session.around.clock, lambda _: progress.advance(bar))
        return run(clean=clean)


def _as_json(migrated: Migrated) -> dict[str, Any]:
    return {
        "ok": migrated.ok,
        "open_conflicts": migrated.conflicts,
        "cleanup_blocked": migrated.cleanup_blocked,
        "note": GONE,
        "sources": [_source(one) for one in migrated.sources],
        "other_files": list(migrated.strangers),
    }


def _source(one: SourceReport) -> dict[str, Any]:
    return {
        "path": one.source.path,
        "kind": "journal" if one.source.is_journal else "queue",
        "digest": one.source.scope,
        "scope": UNKNOWN,
        "imported": one.imported.fresh,
        "known_before": one.imported.known,
        "conflicts": one.imported.conflicts,
        "body_uploads": one.body_uploads,
        "body_upload_failures": one.body_upload_failures,
        "cleaned": one.cleaned,
        "problem": one.problem,
    }


def _show(migrated: Migrated) -> None:
    if migrated.sources:
        table = Table(Column("source", overflow="fold"), "imported", "known", "conflicts", "cleaned", "problem")
        for one in migrated.sources:
            counts = (one.imported.fresh, one.imported.known, one.imported.conflicts, one.cleaned)
            table.add_row(*map(escape, (one.source.path, *map(str, counts), one.problem)))
        out.print(table)
    else:
        out.print("There are no old queues or journals here.")
    err.print(GONE)
    for path in migrated.strangers:
        err.print(f"Left alone, for it is neither a queue nor a journal by its name: {path}", markup=False)
    if migrated.conflicts:
        err.print(
            f"{migrated.conflicts} open conflicts: compare with `millrace sync conflicts`, settle each with "
            "`millrace sync migrate --resolve EVENT --keep journal|source`.",
            style="yellow",
        )
    if migrated.cleanup_blocked:
        err.print("Nothing was cleaned up: open conflicts come first.", style="yellow")
