"""`millrace sync now`: deliver what is due to every target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from millrace.delivery.domain.states import Status
from millrace.delivery.domain.targets import Blocked, Definition
from millrace_client.commands.journal_options import Home, Override, Token, plainly, session_of
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import err, out
from millrace_client.errors import Usage
from millrace_client.journal.drain import Drain, Result, archived_detail
from millrace_client.journal.session import JournalSession


@plainly
def now(
    ctx: typer.Context,
    only: Annotated[list[str] | None, typer.Option("--target", help="Only this target; may be repeated.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Ask a target too that is being left alone after failures.")
    ] = False,
    override: Override = False,
    token: Token = None,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """
    Deliver what is due to every target, side by side. Nothing is deleted by it.

    Exit codes: 0 all delivered, 1 something is left or blocked, 2 usage (for instance when the configuration and the
    environment name different servers), 3 a target cannot be reached.

    Examples:

      millrace sync now

      millrace sync now --target audit --json

      SPEC_KITTY_SAAS_URL=https://hub.example millrace sync now --process-override
    """
    session = session_of(ctx, home, token, override=override)
    results = _drained(session, _chosen(session, only), force, teamspace=not only)
    if as_json:
        print(json.dumps({"targets": [_as_json(one) for one in results]}))
    else:
        _show(results)
    code = _exit_code(results)
    if code:
        raise typer.Exit(code)


def _chosen(session: JournalSession, only: Sequence[str] | None) -> list[Definition]:
    known = {one.id: one for one in session.definitions}
    unknown = [name for name in only or () if name not in known]
    if unknown:
        raise Usage(f"No such target: {', '.join(unknown)}. Known: {', '.join(known) or 'none'}.")
    return [known[name] for name in only] if only else list(known.values())


def _drained(session: JournalSession, chosen: Sequence[Definition], force: bool, *, teamspace: bool) -> list[Result]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        bars = {one.id: progress.add_task(escape(one.id), total=None) for one in chosen}
        return Drain(
            session,
            chosen,
            lambda target_id, events: progress.update(bars[target_id], total=events),
            lambda target_id, attempted: progress.advance(bars[target_id], attempted),
            force,
            teamspace,
        )()


def _as_json(result: Result) -> dict[str, Any]:
    one = result.drained
    return {
        "target": one.target_id,
        "complete": one.complete,
        "blocked": one.blocked,
        "detail": one.detail,
        "open_until_ms": one.open_until_ms,
        "counts": {status.value: one.counts.get(status, 0) for status in Status},
        "left": result.left,
        "archived": result.archived,
    }


def _show(results: Sequence[Result]) -> None:
    if not results:
        err.print("There is no target: set [sync].server_url, or add one under [sync.targets].", style="yellow")
    for result in results:
        one = result.drained
        summary = ", ".join(f"{count} {status}" for status, count in one.counts.items()) or "nothing was due"
        if one.blocked:
            err.print(f"{one.target_id}: blocked, {one.blocked}: {one.detail}", style="yellow", markup=False)
        elif one.open_until_ms:
            err.print(f"{one.target_id}: left alone for now: {one.detail}", style="yellow", markup=False)
        if one.counts or not one.blocked:
            left = f"; {result.left} left for later" if result.left else ""
            out.print(f"{one.target_id}: {summary}{left}.", markup=False)
        if result.archived:
            err.print(f"{one.target_id}: {archived_detail(result.archived)}.", style="yellow", markup=False)


def _exit_code(results: Sequence[Result]) -> int:
    if any(one.drained.blocked == Blocked.NETWORK_UNAVAILABLE for one in results):
        return 3
    given_up = any(one.drained.counts.get(Status.TERMINAL_FAILED) for one in results)
    return 1 if given_up or any(one.left or one.archived or not one.drained.complete for one in results) else 0
