"""`millrace targets retry` and `replay`: deliver again what failed, or a range of positions."""

from __future__ import annotations

from typing import Annotated

import typer

from millrace_client.commands.hub_command import Contract, DryRun, HubCall, Scope, Yes
from millrace_client.commands.output import err, print_json, progress
from millrace_client.errors import Usage

TargetId = Annotated[str, typer.Argument(help="The target's id.")]


def retry(
    call: HubCall,
    target_id: TargetId,
    event_id: Annotated[str | None, typer.Option("--event", help="One event, by the id the target knows.")] = None,
    status: Annotated[
        str, typer.Option(help="All in this state: terminal_failed, rejected, pending or transient.")
    ] = "terminal_failed",
    family: Annotated[list[str] | None, typer.Option(help="Only types that begin so; may be repeated.")] = None,
    since_ms: Annotated[int | None, typer.Option(help="Last tried at this time or later.")] = None,
    until_ms: Annotated[int | None, typer.Option(help="Last tried at this time or earlier.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Try deliveries again: one event, or all in a state. To interrupt it and call it again is safe."""
    with call.operator() as hub:
        if event_id is not None:
            answer = hub.targets.retry(target_id, event_id)
            if call.as_json:
                print_json(answer)
            else:
                err.print(f"{event_id} is tried again.", markup=False)
            return
        matched = retried = 0
        steps = hub.targets.retry_many(
            target_id, status, families=family or (), since_ms=since_ms, until_ms=until_ms, dry_run=dry_run
        )
        for step in steps:
            matched, retried = matched + step["matched"], retried + step["retried"]
            if step["next"] is not None:
                progress(f"{matched} found so far …")
    if call.as_json:
        print_json({"target_id": target_id, "matched": matched, "retried": retried, "dry_run": dry_run})
    else:
        err.print(
            f"{matched} {status}; {'none is tried again: a dry run' if dry_run else f'{retried} are tried again'}."
        )


def replay(
    call: HubCall,
    target_id: TargetId,
    contract: Contract,
    scope: Scope,
    first: Annotated[int, typer.Option("--from", min=1, help="The first position.")],
    last: Annotated[int, typer.Option("--to", min=1, help="The last position.")],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Send a range of positions to a target again, also what it has got. Its receiver must tell repeats by id."""
    matched = replayed = before = 0
    question = f"Send {first} to {last} of {scope} to {target_id} again?"
    with call.operator(contract, scope) as hub:
        if not (dry_run or yes) and not typer.confirm(question, err=True):
            raise Usage("Nothing was replayed.")
        until_ms = None if dry_run else int(call.world.around.clock())
        for step in hub.targets.replay(target_id, contract, scope, first, last, until_ms=until_ms, dry_run=dry_run):
            matched, replayed = matched + step["matched"], replayed + step["replayed"]
            before += step["delivered_before"]
            if step["next"] is not None:
                progress(f"up to {step['next'] - 1}: {matched} found …")
    told = {"matched": matched, "replayed": replayed, "delivered_before": before, "dry_run": dry_run}
    if call.as_json:
        print_json({"target_id": target_id, **told})
    else:
        done = "none is sent: a dry run" if dry_run else f"{replayed} are sent again"
        err.print(f"{matched} found, {before} of them delivered before; {done}.")
