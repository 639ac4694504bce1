"""`millrace events`: the events of a ledger, one of them with where it was delivered, and new ones as they come."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from typing import Annotated

import typer

from millrace_client.commands.groups import group
from millrace_client.commands.hub_command import Contract, HubCall, Limit, Scope, on_hub
from millrace_client.commands.output import err, print_fields, print_json, print_table, short, utc
from millrace_client.operator.events import EventView

PAUSE = 1.0
"""Seconds between two looks at a ledger's end; `follow`, `sessions tail` and `streams follow` need no looks."""

Partition = Annotated[str | None, typer.Option(help="Only events of this partition.")]
Kind = Annotated[str | None, typer.Option("--type", help="Only events of this type.")]


def list_events(
    call: HubCall,
    contract: Contract,
    scope: Scope,
    after: Annotated[int, typer.Option(min=0, help="Start after this position.")] = 0,
    at_ms: Annotated[int | None, typer.Option(help="Start at this time (milliseconds since 1970).")] = None,
    partition: Partition = None,
    kind: Kind = None,
    count: Annotated[int, typer.Option(min=1, help="End after so many.")] = 50,
) -> None:
    """List the events of a ledger by position; with --json one a line."""
    with call.operator(contract, scope) as hub:
        if at_ms is not None:
            first = hub.events.page(contract, scope, at_ms=at_ms, limit=1)
            after = first.events[0].position - 1 if first.events else first.head
        found = hub.events.list(contract, scope, after, partition=partition, type=kind)
        events = list(islice(found, count))
    if call.as_json:
        for event in events:
            print_json(asdict(event))
    elif not print_table(("position", "committed (UTC)", "type", "id", "by"), map(_row, events)):
        err.print("No events there.")
    if len(events) == count:
        err.print(f"There may be more: go on with --after {events[-1].position}.")


def show(
    call: HubCall,
    contract: Contract,
    scope: Scope,
    event_id: Annotated[str, typer.Argument(help="The event's id.")],
) -> None:
    """Show one event: its content, who committed it when, and which target has it."""
    with call.operator(contract, scope) as hub:
        event, deliveries = hub.events.find(contract, scope, event_id)
    if call.as_json:
        print_json({"event": asdict(event), "deliveries": [asdict(one) for one in deliveries]})
        return
    print_fields(
        [
            ("id", event.id),
            ("position", event.position),
            ("type", event.type),
            ("committed", f"{utc(event.committed_ms)} UTC by {event.client_id}"),
            ("partitions", ", ".join(event.partitions)),
            ("content", "pruned: no longer kept" if event.pruned else short(event.content, 2000)),
        ]
    )
    rows = [(one.target_id, one.state, one.attempts, utc(one.last_ms), one.error) for one in deliveries]
    if not print_table(("target", "state", "attempts", "last (UTC)", "error"), rows):
        err.print("No target hears of this ledger.")


def tail(
    call: HubCall,
    contract: Contract,
    scope: Scope,
    after: Annotated[int | None, typer.Option(min=0, help="Start after this position; default: now.")] = None,
    partition: Partition = None,
    kind: Kind = None,
    count: Limit = None,
) -> None:
    """Print events of any ledger as they are committed, until Ctrl-C; pruned positions are said."""
    given, at = 0, after or 0
    with call.operator(contract, scope) as hub, suppress(KeyboardInterrupt):
        if after is None:
            at = hub.ledgers.get(contract, scope).head
        err.print(f"Waiting for events after {at} …")
        while True:
            page = hub.events.page(contract, scope, at, partition=partition, type=kind)
            if page.floor > at + 1:
                err.print(f"Gap: events {at + 1} to {page.floor - 1} are no longer kept.", style="red")
                at = page.floor - 1
            for event in page.events:
                _print(call, event)
                given += 1
                if given == count:
                    return
            if page.next_after <= at or page.next_after >= page.head:
                call.world.sleep(PAUSE)
            at = max(at, page.next_after)
    err.print(f"Stopped after position {at}.")


def _row(event: EventView) -> tuple[object, ...]:
    return event.position, utc(event.committed_ms), event.type or "(pruned)", event.id, event.client_id


def _print(call: HubCall, event: EventView) -> None:
    if call.as_json:
        print_json(asdict(event))
    else:
        print(f"{event.position:>8}  {event.type or '(pruned)'}  {event.id}  {short(event.content)}", flush=True)


app = group(
    "Look at the events of any ledger. Needs the role operator.",
    "millrace events list sync demo --count 5",
    "millrace events show sync demo order-17-paid",
    "millrace events tail sync demo --after 0 --count 1",
    list=on_hub(list_events),
    show=on_hub(show),
    tail=on_hub(tail),
)
