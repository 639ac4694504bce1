"""`millrace deliveries`: what became of the events at a target, and the attempts of one of them."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import typer

from millrace_client.commands.hub_command import HubCall
from millrace_client.commands.output import err, print_fields, print_json, print_table, utc

HELP = "List the deliveries of a target, or show the attempts of one. Needs the role operator."
EXAMPLES = (
    "millrace deliveries archive",
    "millrace deliveries archive --status terminal_failed",
    "millrace deliveries archive --event sync:demo:order-17-paid",
)


def deliveries(
    call: HubCall,
    target_id: Annotated[str, typer.Argument(help="The target's id.")],
    status: Annotated[
        str | None, typer.Option(help="success, pending, rejected, transient or terminal_failed; default all.")
    ] = None,
    event_id: Annotated[
        str | None, typer.Option("--event", help="One event with its attempts, by the id the target knows.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="End after so many.")] = 50,
) -> None:
    with call.operator() as hub:
        if event_id is not None:
            _show(hub.targets.attempts(target_id, event_id), call)
            return
        found = list(islice(hub.targets.deliveries(target_id, status), count))
    if call.as_json:
        for one in found:
            print_json(one)
    elif not print_table(("event", "state", "attempts", "last (UTC)", "error"), map(_row, found)):
        err.print("No deliveries there.")
    if len(found) == count:
        err.print(f"There may be more: raise --count {count}.")


def _row(one: dict[str, Any]) -> tuple[object, ...]:
    return one["event_id"], one["status"], one.get("attempts"), utc(one.get("last_ms")), one.get("error")


def _show(one: dict[str, Any], call: HubCall) -> None:
    if call.as_json:
        print_json(one)
        return
    print_fields(
        [
            ("event", f"{one['event_id']} ({one['event_type']})"),
            ("from", f"{one['contract']} {one['scope']}, position {one['position']}"),
            ("state", one["status"]),
            ("attempts", one["attempts"]),
            ("next", utc(one["next_ms"])),
            ("error", one["error"]),
        ]
    )
    rows = [(utc(each["at_ms"]), each["status"], each["answer"], each["error"]) for each in one["history"]]
    print_table(("attempt (UTC)", "state", "answer", "error"), rows)
