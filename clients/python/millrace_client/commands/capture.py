"""`millrace capture`: make events durable on this machine, whether or not anyone can be reached."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from millrace.delivery.domain.events import MOST_EVENT_BYTES, Captured, captured
from millrace.ledger.domain import strict_json
from millrace.ledger.domain.errors import BadRequest, TooLarge
from millrace_client.commands.connection import World
from millrace_client.commands.journal_options import Home, Token, plainly
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import err
from millrace_client.errors import Usage
from millrace_client.home import default_home
from millrace_client.journal.capture import Capture, Report
from millrace_client.journal.config import load_to_capture
from millrace_client.journal.identity import bearer
from millrace_client.journal.journals import Journals
from millrace_client.journal.sqlite.journal import SqliteJournal


@plainly
def capture(
    ctx: typer.Context,
    kind: Annotated[str | None, typer.Option("--type", help="The event's type.")] = None,
    payload: Annotated[str | None, typer.Option(help="The event's payload, as JSON.")] = None,
    event_id: Annotated[str | None, typer.Option("--id", help="The event's id; made up if left out.")] = None,
    file: Annotated[str | None, typer.Option(help="Many events, one JSON object a line; - for standard input.")] = None,
    coalesce: Annotated[
        str | None, typer.Option(help="Replaces an earlier event with this key that nobody was sent yet.")
    ] = None,
    opt_out: Annotated[
        bool, typer.Option("--opt-out", help="Discard it, if its family may be discarded; else it is kept.")
    ] = False,
    token: Token = None,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """
    Keep events in the local journal. No network, token or server is needed; `millrace sync now` delivers.

    A line of a file is an event: a JSON object with event_id and event_type, kept byte for byte. Each user and team has
    a journal of its own; what is captured without a token goes to the first that delivers.

    Examples:

      millrace capture --type order.paid --payload '{"order": 17}'

      millrace capture --type cart.changed --payload '{"items": 3}' --coalesce cart-9

      millrace capture --file events.jsonl
    """
    events = _events(kind, payload, event_id, file, coalesce)
    world: World = ctx.obj
    config, problem = load_to_capture(home or default_home(), world.around.environment)
    with Journals(config.home).open(bearer(token and token.strip(), config.team_slug)) as database:
        report = Capture(SqliteJournal(database), config.families, world.around.clock)(events, opt_out=opt_out)
    if problem:
        err.print(
            f"{problem} Captured all the same; nothing is sent until that is mended.", style="yellow", markup=False
        )
    if as_json:
        print(json.dumps(_as_json(report)))
    else:
        _show(report)


def _events(
    kind: str | None, payload: str | None, event_id: str | None, file: str | None, coalesce: str | None
) -> list[Captured]:
    if file is not None:
        if kind is not None or payload is not None or event_id is not None or coalesce is not None:
            raise Usage("--file does not go with --type, --payload, --id or --coalesce.")
        return _from_file(file)
    if kind is None or payload is None:
        raise Usage("Give --type and --payload for one event, or --file for many.")
    raw = payload.encode("utf-8", "surrogatepass")
    try:
        strict_json.parse(raw, MOST_EVENT_BYTES)
    except BadRequest as error:
        raise Usage(f"--payload: {error.message.replace('The body', 'It').replace('the body', 'it')}") from error
    named = {"event_id": str(uuid.uuid4()) if event_id is None else event_id, "event_type": kind}
    start = json.dumps(named, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return [captured(start[:-1] + b', "payload": ' + raw.strip() + b"}", coalesce)]


def _from_file(file: str) -> list[Captured]:
    """All of them are looked at before the first is kept."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Usage(f"Cannot read {file}: {error}") from error
    events = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            try:
                events.append(captured(line.strip()))
            except (BadRequest, TooLarge) as error:
                raise Usage(f"line {number}: {error.message} Nothing of the file was kept.") from error
    if not events:
        raise Usage(f"There are no events in {file}.")
    return events


def _as_json(report: Report) -> dict[str, Sequence[object]]:
    return {
        "captured": [
            {"event_id": one.event_id, "fresh": one.fresh, "superseded": one.superseded} for one in report.taken
        ],
        "discarded": list(report.discarded),
        "kept_despite_opt_out": list(report.kept_despite_opt_out),
    }


def _show(report: Report) -> None:
    fresh = sum(one.fresh for one in report.taken)
    known = len(report.taken) - fresh
    parts = [f"{fresh} captured"]
    parts += [f"{known} known before"] if known else []
    parts += [f"{len(report.discarded)} discarded"] if report.discarded else []
    err.print(", ".join(parts) + ".")
    if report.kept_despite_opt_out:
        count = len(report.kept_despite_opt_out)
        err.print(f"{count} kept although opted out of: a fact of the team is not dropped.", style="yellow")
