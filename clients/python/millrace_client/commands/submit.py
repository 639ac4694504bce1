"""`millrace submit`: one event from the command line, or many from a file."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from millrace_client.commands.connection import Asked, World
from millrace_client.commands.journal_options import Home, Override
from millrace_client.commands.options import JsonOutput, Project, Token, Url
from millrace_client.commands.output import err, out
from millrace_client.errors import ClientError, Refused, Usage
from millrace_client.home import default_home
from millrace_client.sync import events
from millrace_client.sync.http import Client
from millrace_client.sync.protocol import compact

MOST_SHOWN = 20
INTERRUPTED = 130
"""What a shell says of a program that Ctrl-C ended."""


def submit(
    ctx: typer.Context,
    project: Project,
    partition: Annotated[list[str] | None, typer.Option(help="A partition the event touches; may be repeated.")] = None,
    kind: Annotated[str | None, typer.Option("--type", help="The event's type.")] = None,
    payload: Annotated[str | None, typer.Option(help="The payload: JSON, @file, or - for standard input.")] = None,
    event_id: Annotated[str | None, typer.Option("--id", help="The event's id; made up if left out.")] = None,
    file: Annotated[
        str | None, typer.Option(help="Many events, one JSON object a line (- for standard input); give ids to rerun.")
    ] = None,
    url: Url = None,
    override: Override = False,
    token: Token = None,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """
    Commit events, each exactly once: retries go out under the same ids.

    Examples:

    \b
      millrace submit --project demo --partition orders --type order.paid --payload '{"order": 17}' --id order-17-paid
    """
    drafts = _drafts(partition or [], kind, payload, event_id, file)
    world: World = ctx.obj
    results: list[dict[str, Any]] = []
    with world.connect(Asked(url, token, override, home), project) as hub:
        try:
            _submit_all(hub, project, drafts, results)
        except ClientError as error:
            if results or not _unprocessed(error):
                _keep(drafts[len(results) :], home or default_home())
            raise
        except KeyboardInterrupt:
            committed = sum(result["status"] == "committed" for result in results)
            err.print(f"Interrupted: {committed} of {len(drafts)} events are known to be committed.", style="yellow")
            _keep(drafts[len(results) :], home or default_home())
            raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print(json.dumps({"results": results}))
    else:
        _show(results)
    if any(result["status"] != "committed" for result in results):
        raise typer.Exit(1)


def _drafts(
    partitions: Sequence[str], kind: str | None, payload: str | None, event_id: str | None, file: str | None
) -> list[events.Event]:
    if file is not None:
        if kind is not None or payload is not None or event_id is not None:
            raise Usage("--file does not go with --type, --payload or --id.")
        drafts = list(events.from_lines(events.lines_of(file), partitions))
        if not drafts:
            raise Usage(f"There are no events in {file}.")
        return drafts
    if event_id == "":
        raise Usage("--id is empty; leave it out to have one made up.")
    if kind is None or payload is None or not partitions:
        raise Usage("Give --partition, --type and --payload for one event, or --file for many.")
    return [events.one(kind, payload, partitions, event_id)]


def _submit_all(hub: Client, project: str, drafts: Sequence[events.Event], results: list[dict[str, Any]]) -> None:
    """One result after the other, so that it is known how far it came."""
    columns = (TextColumn("submitting"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=len(drafts) <= events.BATCH) as progress:
        bar = progress.add_task("submitting", total=len(drafts))
        for batch in events.batches(drafts):
            results += hub.submit(project, batch)
            progress.advance(bar, len(batch))


def _unprocessed(error: ClientError) -> bool:
    """Whether it is certain that the hub took no event of the request; one that stood in line too long, it may take."""
    return isinstance(error, Refused) and error.status < 500 and error.status != 429


def _keep(unanswered: Sequence[events.Event], home: Path) -> None:
    """Ids that were made up must not be lost: some of these may be committed, and are told apart by nothing else."""
    file = home / "unsent" / f"{uuid.uuid4()}.jsonl"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text("".join(f"{compact(event)}\n" for event in unanswered), encoding="utf-8")
    except OSError as error:
        err.print(f"{len(unanswered)} events have no result, and cannot be kept: {error}.", style="red", markup=False)
        return
    said = f"{len(unanswered)} events have no result. They are in {file}: submit that --file to send them again"
    err.print(f"{said} under the same ids.", style="yellow", markup=False)


def _show(results: Sequence[dict[str, Any]]) -> None:
    rejected = [result for result in results if result["status"] != "committed"]
    shown = results if len(results) <= MOST_SHOWN else rejected[:MOST_SHOWN]
    if shown:
        table = Table(Column("id", overflow="fold"), "status", Column("committed_id", no_wrap=True), "reason")
        for result in shown:
            cells = (result["id"], result["status"], str(result.get("committed_id", "")), _reason(result))
            table.add_row(*map(escape, cells))
        out.print(table)
    err.print(f"{len(results) - len(rejected)} committed, {len(rejected)} rejected.")


def _reason(result: dict[str, Any]) -> str:
    texts = [f"{error.get('field')}: {error.get('message')}" for error in result.get("errors") or []]
    return "; ".join([str(result.get("reason", "")), *texts]).strip("; ")
