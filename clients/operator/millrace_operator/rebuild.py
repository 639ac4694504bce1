"""`millrace rebuild`: make State and the partition index again, after a restore."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from millrace.ledger.domain.errors import MillraceError
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import err, out
from millrace_client.errors import Unreachable, Usage
from millrace_operator.hub_access import Region, Stack, open_hub
from millrace_operator.place_file import PlaceFile

BARS = {"claims": "claims", "objects": "archive objects", "pages": "pages of the log", "ledgers": "ledgers"}


def rebuild(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only read, and tell what would be written.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before writing.")] = False,
    without_claims: Annotated[
        bool, typer.Option("--without-claims", help="Log and Claims were not restored: leave Claims alone.")
    ] = False,
    place: Annotated[
        Path | None, typer.Option("--place", help="The file that keeps the place; default: one for this hub, here.")
    ] = None,
    stack: Stack = None,
    region: Region = None,
    as_json: JsonOutput = False,
) -> None:
    """Make State and the partition index again from Log, Claims and the archive, and say what cannot be known.

    It only adds, and raises what is too low. Killed, it goes on where it was when started again. Exit code 0, or 1 if
    it found something that has to be seen to.

    Example: millrace rebuild --dry-run
    """
    from millrace.operators.application.bookmark import Bookmark  # noqa: PLC0415 - comes with boto3, slow to import
    from millrace.operators.application.dry_run import DryPlace  # noqa: PLC0415

    hub = open_hub(stack, region)
    if not dry_run:
        _confirm(stack or "the local hub", yes=yes, quiet=as_json)
    try:
        file = PlaceFile(place or Path(f"millrace-rebuild-{stack or 'local'}.json"), hub.identity)
        bookmark = Bookmark.open(DryPlace() if dry_run else file)
        if bookmark.resumed:
            err.print(f"Going on from {file.path}.", markup=False)
        with Progress(
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=err
        ) as progress:
            totals = {"claims": 0 if without_claims else hub.claim_scan.count(), "pages": hub.log_scan.count()}
            bars = {what: progress.add_task(title, total=totals.get(what)) for what, title in BARS.items()}
            use_case = hub.rebuild(
                lambda what, count: progress.advance(bars[what], count),
                with_claims=not without_claims,
                dry_run=dry_run,
            )
            report = use_case(bookmark)
    except MillraceError as error:
        kept = "" if dry_run else " Start it again: it goes on where it was."
        raise Unreachable(f"{error.message} {dict(error.details)}{kept}") from error
    if as_json:
        print(json.dumps(report.as_json() | {"dry_run": dry_run}))
    else:
        _print(report.as_json(), dry_run=dry_run)
    if not report.sound:
        raise typer.Exit(1)


def _confirm(hub: str, *, yes: bool, quiet: bool) -> None:
    if yes:
        return
    if quiet or not sys.stdin.isatty():
        raise Usage("Nothing was written: look at --dry-run first, then say --yes.")
    err.print("Let no writer in and keep the archive's function stopped until this has ended.")
    typer.confirm(f"Rebuild State and the partition index of {hub}?", abort=True, err=True)


def _print(shown: Mapping[str, Any], *, dry_run: bool) -> None:
    out.print("Would be done:" if dry_run else "Done:")
    for what, number in shown["counts"].items():
        out.print(f"  {what}: {number}", markup=False)
    for name, finding in shown["findings"].items():
        out.print(f"{name}: {finding['count']}. {finding['means']}", markup=False, soft_wrap=True)
        for one in finding["names"]:
            out.print(f"  {one}", markup=False, soft_wrap=True)
    if shown["unknown"]:
        out.print("State had forgotten ledgers. What was in State alone cannot be known:")
        for unknown in shown["unknown"]:
            out.print(f"  {unknown['what']}: {unknown['means']}", markup=False, soft_wrap=True)
    elif shown["sound"]:
        out.print("State and the index are complete.")
