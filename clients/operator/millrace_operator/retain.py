"""`millrace retain`: prune what nobody needs any more, after showing what that is."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table

from millrace.ledger.domain.errors import MillraceError
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import err, out
from millrace_client.errors import Unreachable, Usage
from millrace_operator.hub_access import Region, Stack, open_hub


def retain(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what would go, and who holds the rest.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before pruning.")] = False,
    stack: Stack = None,
    region: Region = None,
    as_json: JsonOutput = False,
) -> None:
    """Prune the log as the retention policies say, never past what somebody still has to read.

    Bodies go; positions, ids and digests stay. Exit code 0, or 1 if it could not do all it had planned.

    Example: millrace retain --dry-run
    """
    use_case = open_hub(stack, region).retain()
    try:
        with err.status("Looking at every ledger that has a policy …"):
            report = use_case(dry_run=True)
        if not dry_run and any(plan.goes for plan in report.plans):
            shown = report.as_json()
            _confirm(shown, yes=yes, quiet=as_json)
            with err.status(f"Pruning {shown['events']} events …"):
                use_case.go(report)
    except MillraceError as error:
        raise Unreachable(f"{error.message} {dict(error.details)}") from error
    if as_json:
        print(json.dumps(report.as_json()))
    else:
        _print(report.as_json(), dry_run=dry_run)
    if not report.complete:
        raise typer.Exit(1)


def _confirm(shown: Mapping[str, Any], *, yes: bool, quiet: bool) -> None:
    if yes:
        return
    if quiet or not sys.stdin.isatty():
        raise Usage("Nothing was pruned: look at --dry-run first, then say --yes.")
    _print(shown, dry_run=True)
    typer.confirm(f"Prune the bodies of {shown['events']} events for ever?", abort=True, err=True)


def _print(shown: Mapping[str, Any], *, dry_run: bool) -> None:
    if not shown["ledgers"]:
        out.print("No ledger has a retention policy; nothing is ever pruned.")
        return
    table = Table("ledger", "floor", "head", "watermark", "held by", "goes", "bytes", box=None, pad_edge=False)
    for plan in shown["ledgers"]:
        highest = max([plan["watermark"], *plan["partition_watermarks"].values()])
        numbers = (plan["floor"], plan["head"], highest)
        held = plan["held_by"] if plan["held_by"] not in plan["holders"] else f"{plan['held_by']} at {plan['limit']}"
        table.add_row(plan["ledger"], *map(str, numbers), held, str(plan["events"]), str(plan["bytes"]))
    out.print(table)
    if dry_run:
        out.print(f"{shown['events']} events, {shown['bytes']} bytes would go.")
    else:
        out.print(f"{shown['removed']} events went; what went is listed in {shown['manifest'] or 'no manifest'}.")
