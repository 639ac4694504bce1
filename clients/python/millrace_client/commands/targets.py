"""`millrace targets`: how the targets of a hub fare, and what an operator does with them."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from millrace_client.commands.groups import group
from millrace_client.commands.hub_command import HubCall, Yes, on_hub
from millrace_client.commands.output import err, print_fields, print_json, print_table
from millrace_client.commands.target_repeats import replay, retry
from millrace_client.commands.target_settings import put
from millrace_client.errors import Usage

TargetId = Annotated[str, typer.Argument(help="The target's id.")]


def list_targets(
    call: HubCall,
    counts: Annotated[
        bool, typer.Option("--counts", help="The deliveries of each that are not done, by state.")
    ] = False,
) -> None:
    """Show the hub's targets: who drains which since when, what is due, and what is stuck."""
    if counts:
        _list_counts(call)
        return
    with call.operator() as hub:
        status = hub.targets.status()
    if call.as_json:
        print_json(status)
        return
    rows = [_row(one) for one in status["delivery_targets"]]
    if not print_table(("target", "delivered", "open", "given up", "state"), rows):
        err.print("No targets. Make one with `millrace targets put`.")


def _list_counts(call: HubCall) -> None:
    with call.operator() as hub:
        targets = hub.targets.list(counts=True)
    if call.as_json:
        for one in targets:
            print_json(one)
        return
    states = ("pending", "transient", "rejected", "terminal_failed")
    rows = [(one["target_id"], *(one["deliveries"][state] for state in states)) for one in targets]
    if not print_table(("target", *states), rows):
        err.print("No targets. Make one with `millrace targets put`.")
    for one in targets:
        if not one["counts_complete"]:
            err.print(f"{one['target_id']} has more runs of deliveries than are counted.", markup=False)


def show(call: HubCall, target_id: TargetId) -> None:
    """Show one target with its settings; secrets are never shown."""
    with call.operator() as hub:
        target = hub.targets.get(target_id)
    if call.as_json:
        print_json(target)
        return
    sources = ", ".join(f"{one['contract']} {one['scope']}" for one in target["sources"])
    print_fields([*((name, value) for name, value in target.items() if name != "sources"), ("sources", sources)])


def pause(call: HubCall, target_id: TargetId) -> None:
    """Stop a target: it gets nothing until it is resumed, and retention keeps what it has not got."""
    with call.operator() as hub:
        _done(call, hub.targets.pause(target_id), f"{target_id} is paused.")


def resume(call: HubCall, target_id: TargetId) -> None:
    """Continue a target that was paused."""
    with call.operator() as hub:
        _done(call, hub.targets.resume(target_id), f"{target_id} goes on.")


def drain(call: HubCall, target_id: TargetId) -> None:
    """Ask for a drain now."""
    with call.operator() as hub:
        hub.targets.drain(target_id)
    _done(call, {"target_id": target_id, "drain": "asked"}, f"A drain of {target_id} was asked for.")


def delete(call: HubCall, target_id: TargetId, yes: Yes = False) -> None:
    """Delete a target: it gets nothing more, and retention no longer waits for it. Its history stays."""
    with call.operator() as hub:
        if not yes and not typer.confirm(f"Delete the target {target_id}?", err=True):
            raise Usage("Nothing was deleted.")
        deleted = hub.targets.delete(target_id)
    _done(call, {"target_id": target_id, "deleted": deleted}, "Deleted." if deleted else "There was no such target.")


def describe(target: dict[str, Any], now_ms: int) -> str:
    """What an operator wants to know first, and whether the requests go out unsigned."""
    return _state(target, now_ms) + (", unsigned" if target.get("unsigned") else "")


def _row(target: dict[str, Any]) -> tuple[object, ...]:
    counts = target["deliveries"]
    waiting = counts["pending"] + counts["rejected"] + counts["transient"]
    state = describe(target, int(time.time() * 1000))
    return target["target_id"], target["delivered_count"], waiting, counts["terminal_failed"], state


def _state(target: dict[str, Any], now_ms: int) -> str:
    if target["stuck"]:
        return f"stuck: {target['stuck']}"
    if target["paused"]:
        return f"paused: {target['paused_why']}"
    if target["drain"]:
        return f"drained by {target['drain']['holder']} for {_seconds(target['drain']['since_ms'], now_ms)}"
    if target["blocked"]:
        return f"blocked: {target['blocked_detail'] or target['blocked']}"
    if target["waits_since_ms"]:
        return f"waits for its turn for {_seconds(target['waits_since_ms'], now_ms)}"
    if target["has_due"]:
        return "due: " + ", ".join(f"{one['contract']} {one['scope']}" for one in target["due"])
    return "idle"


def _seconds(since_ms: int, now_ms: int) -> str:
    return f"{max(0, now_ms - since_ms) // 1000} s"


def _done(call: HubCall, answer: dict[str, Any], text: str) -> None:
    if call.as_json:
        print_json(answer)
    else:
        err.print(text, markup=False)


app = group(
    "See and steer the targets that events are delivered to. Needs the role operator.",
    "millrace targets put archive --type stub --source 'sync demo'",
    "millrace targets list",
    "millrace targets list --counts",
    "millrace targets pause archive",
    "millrace targets resume archive",
    "millrace targets retry archive --status terminal_failed --dry-run",
    "millrace targets delete archive --yes",
    list=on_hub(list_targets),
    show=on_hub(show),
    put=on_hub(put),
    pause=on_hub(pause),
    resume=on_hub(resume),
    retry=on_hub(retry),
    replay=on_hub(replay),
    drain=on_hub(drain),
    delete=on_hub(delete),
)
