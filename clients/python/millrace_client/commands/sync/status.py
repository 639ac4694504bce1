"""`millrace sync status`: which target has what, why the rest is not there, and what to do (D11)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from millrace.ledger.domain.errors import MillraceError
from millrace_client.commands.journal_options import Home, Override, Token, plainly, session_of
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import err, out
from millrace_client.errors import Usage
from millrace_client.journal.collect import Gc
from millrace_client.journal.delivery_status import SUGGEST_BYTES, DeliveryStatus
from millrace_client.journal.drain import archived_detail
from millrace_client.journal.journals import owner
from millrace_client.journal.old_queues import LEGACY, OldQueues, counts
from millrace_client.journal.session import JournalSession
from millrace_client.journal.sqlite.database import Database
from millrace_client.journal.sqlite.imports import SqliteImports
from millrace_client.journal.sqlite.journal import SqliteJournal
from millrace_client.journal.sqlite.ledger import SqliteLedger
from millrace_client.journal.sqlite.overview import SqliteOverview
from millrace_client.journal.sqlite.targets import SqliteTargets

Report = dict[str, Any]


@plainly
def status(
    ctx: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 or 2 if something needs a hand.")] = False,
    override: Override = False,
    token: Token = None,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """
    Say how delivery stands. Nothing is sent.

    Examples:

      millrace sync status

      millrace sync status --check --json
    """
    disagreement = ""
    try:
        session = session_of(ctx, home, token, override=override)
    except Usage as error:
        disagreement = str(error)
        session = session_of(ctx, home, token, lenient=True)
    with session.database() as database:
        report = report_of(session, database, disagreement)
    if as_json:
        print(json.dumps(report))
    else:
        _show(report)
    if check and report["exit_code"]:
        raise typer.Exit(report["exit_code"])


def report_of(session: JournalSession, database: Database, disagreement: str = "") -> Report:
    """The old top-level fields, and the seven sections beside them: of our journal, and the conflicts of all."""
    journal = SqliteJournal(database, session.awaited(SqliteTargets(database).known()))
    with ExitStack() as opened:
        others = [opened.enter_context(Database(path)) for path in session.journals.paths() if path != database.path]
        sections = DeliveryStatus(
            SqliteOverview(database),
            SqliteLedger(database),
            lambda: [found for one in (database, *others) for found in SqliteImports(one).conflicts()],
            partial(Gc(journal, session.around.clock), dry_run=True),
            SUGGEST_BYTES,
        )([one.id for one in session.definitions], session.unsigned)
        sections["event_journal"] |= _journals(session, database, others)
    sections["event_journal"]["drain_blocked"] += _nameless(database)
    code = _exit_code(sections, disagreement)
    return {
        "ok": code == 0,
        "exit_code": code,
        "auth_required": session.authority.resolved_server_url is not None,
        "auth_present": session.identity is not None,
        "active_queue": _queue(session.authority.queue_db_path),
        "legacy_queue": _queue(str(session.config.home / LEGACY)),
        "target_authority": {**session.authority.as_json(), "error": disagreement or None},
        **sections,
        "body_upload_compatibility": _body_uploads(session.config.home),
    }


def _journals(session: JournalSession, database: Database, others: Sequence[Database]) -> Report:
    """Whose journal this is, and what waits in others: unclaimed ones are taken over by the next drain (D1)."""
    unclaimed = set(session.journals.unclaimed(session.producer))
    shown = [
        {
            "path": str(one.path),
            "user_id": owner(one).user_id,
            "team_slug": owner(one).team_slug,
            "retained_event_count": SqliteOverview(one).journal().retained,
            "unclaimed": one.path in unclaimed,
        }
        for one in others
    ]
    return {
        "path": str(database.path),
        "user_id": session.producer.user_id,
        "team_slug": session.producer.team_slug,
        "unclaimed_event_count": sum(one["retained_event_count"] for one in shown if one["unclaimed"]),
        "other_journals": shown,
    }


def _exit_code(sections: Report, disagreement: str) -> int:
    if disagreement:
        return 2
    trouble = (
        sections["event_journal"]["drain_blocked"],
        sections["migration_conflicts"]["open_count"],
        sections["terminal_failures"]["count"],
        [one for one in sections["delivery_targets"] if one["paused"] and one["current"]],
        sections["delivery_ledger"]["archived_undelivered_count"],
    )
    return 1 if any(trouble) else 0


def _nameless(database: Database) -> list[Report]:
    rows = database.connection.execute("SELECT scope, reason, detail, since_ms FROM drain_block")
    return [{"target": row[0], "reason": row[1], "detail": row[2], "since_ms": row[3]} for row in rows]


def _queue(path: str | None) -> Report:
    found = counts(Path(path)) if path else None
    events, uploads = found or (0, 0)
    return {"path": path, "event_count": events, "body_upload_count": uploads}


def _body_uploads(home: Path) -> Report:
    """Counted in the old queues, which own them; none of them is an event of the journal."""
    queues = OldQueues(home)
    uploads = failures = 0
    unreadable: list[str] = []
    for source in queues.find():
        if source.is_journal:
            continue
        try:
            contents = queues.read(source)
        except MillraceError:
            unreadable.append(source.path)
            continue
        uploads += contents.body_uploads
        failures += contents.body_upload_failures
    return {
        "owner": "sync/queue.py",
        "body_upload_count": uploads,
        "body_upload_queue_count": uploads,
        "body_upload_failure_count": failures,
        "body_upload_failure_log_count": failures,
        "unreadable_sources": unreadable,
    }


def _show(report: Report) -> None:
    authority, journal, ledger = report["target_authority"], report["event_journal"], report["delivery_ledger"]
    out.print(f"Server: {authority['resolved_server_url'] or 'none'} ({authority['override_mode']})", markup=False)
    if authority["error"]:
        err.print(authority["error"], style="red", markup=False)
    if authority["active_queue_scope_status"] == "stale_non_authoritative":
        err.print("An old active_queue_scope is left behind; it is ignored.", style="yellow")
    out.print(
        f"Journal: {journal['retained_event_count']} events retained ({journal['retained_bytes']} bytes), "
        f"{ledger['current_target_delivered_count']} delivered to today's targets, "
        f"{ledger['previous_target_delivered_count']} to earlier ones, {ledger['terminal_failed_count']} given up. "
        f"Body uploads in the old queues: {report['body_upload_compatibility']['body_upload_count']}."
    )
    _show_targets(report)
    for one in journal["other_journals"]:
        _show_other(one)
    for one in journal["drain_blocked"]:
        err.print(f"{one['target']}: blocked, {one['reason']}: {one['detail']}", style="yellow", markup=False)
    for one in report["terminal_failures"]["failures"]:
        line = f"{one['target']}: {one['event_id']} was given up: {one['error']}"
        err.print(line, style="yellow", markup=False)
    for one in report["migration_conflicts"]["conflicts"]:
        err.print(f"{one['event_id']}: {one['reason']} ({one['source']})", style="yellow", markup=False)
    if ledger["archived_undelivered_count"]:
        err.print(archived_detail(ledger["archived_undelivered_count"]), style="yellow", markup=False)
    if journal["suggestion"]:
        out.print(journal["suggestion"])


def _show_other(journal: Report) -> None:
    if not journal["retained_event_count"]:
        return
    whose = "/".join(part or "-" for part in (journal["user_id"], journal["team_slug"]))
    what = "the next drain takes them over" if journal["unclaimed"] else f"only {whose} delivers them"
    out.print(f"{journal['retained_event_count']} events in another journal: {what} ({journal['path']}).", markup=False)


def _show_targets(report: Report) -> None:
    if not report["delivery_targets"]:
        return
    table = Table(Column("target", overflow="fold"), "delivered", "open", "given up", "not yet sent", "state")
    for one in report["delivery_targets"]:
        deliveries = one["deliveries"]
        waiting = deliveries["pending"] + deliveries["rejected"] + deliveries["transient"]
        state = "paused" if one["paused"] else one["blocked"] or ("current" if one["current"] else "earlier")
        state += ", unsigned" if one["unsigned"] else ""
        counted = (
            deliveries["success"] + deliveries["duplicate"],
            waiting,
            deliveries["terminal_failed"],
            one["unattempted_count"],
        )
        table.add_row(escape(one["id"]), *map(str, counted), state)
    out.print(table)
