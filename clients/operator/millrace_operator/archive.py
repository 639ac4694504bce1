"""`millrace archive …`: whether the archive holds what was committed, and refilling what it lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from millrace.ledger.domain.errors import MillraceError
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import err, out
from millrace_client.errors import Unreachable
from millrace_operator.hub_access import Region, Stack, open_hub

app = typer.Typer(
    name="archive", help="Look after the archive.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)
MOST_SPANS = 10


@app.callback()
def root() -> None:
    """Look after the archive, with access to the hub's own tables and bucket."""


@app.command()
def verify(
    refill: Annotated[bool, typer.Option("--refill", help="Archive what is missing and still in the log.")] = False,
    stack: Stack = None,
    region: Region = None,
    as_json: JsonOutput = False,
) -> None:
    """Prove the archive against the log: every position of every ledger is there once, or the gap is named.

    Exit code 0 if the archive is sound, 1 if not; after --refill, gaps that were refilled do not count.

    Example: millrace archive verify --refill
    """
    hub = open_hub(stack, region)
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), console=err, transient=True
    ) as progress:
        bars = {what: progress.add_task(f"{what}s", total=None) for what in ("object", "ledger")}
        try:
            found = hub.verify(lambda what, count: progress.advance(bars[what], count))(refill=refill)
        except MillraceError as error:
            raise Unreachable(f"{error.message} {dict(error.details)}") from error
    shown = found.as_json()
    healed = bool(found.refilled) and not (found.repeated or found.different or found.damaged)
    if as_json:
        print(json.dumps(shown))
    else:
        _print(shown)
    if not found.sound and not healed:
        raise typer.Exit(1)


def _print(shown: Mapping[str, Any]) -> None:
    out.print(
        f"{shown['events']} events of {shown['ledgers']} ledgers in {shown['objects']} objects; "
        f"{shown['waiting']} wait to be archived, {shown['pruned']} were pruned everywhere."
    )
    for title, field in (
        ("not archived", "gaps"),
        ("archived more than once", "repeated"),
        ("archived otherwise than committed", "different"),
    ):
        for ledger, spans in shown[field].items():
            out.print(f"{ledger}: {title}: {_spans(spans)}", markup=False)
    for name, why in shown["damaged"].items():
        out.print(f"{name}: {why}", markup=False)
    for name in shown["refilled"]:
        out.print(f"refilled into {name}", markup=False)
    if shown["sound"]:
        out.print("The archive is sound.")


def _spans(spans: Sequence[Sequence[int]]) -> str:
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in spans[:MOST_SPANS]]
    more = len(spans) - MOST_SPANS
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")
