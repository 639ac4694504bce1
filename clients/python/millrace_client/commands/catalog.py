"""`millrace catalog`: put versioned events into a domain, and read them by position."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import typer

from millrace_client.catalog import Catalog
from millrace_client.commands.groups import group
from millrace_client.commands.hub_command import HubCall, Limit, on_hub
from millrace_client.commands.output import err, print_json, print_table, short, utc
from millrace_client.errors import Usage
from millrace_client.sync import events

Domain = Annotated[str, typer.Argument(help="The domain.")]


def put(
    call: HubCall,
    domain: Domain,
    kind: Annotated[str | None, typer.Option("--type", help="The event's type.")] = None,
    version: Annotated[int, typer.Option(min=1, help="The version of its type.")] = 1,
    source: Annotated[str, typer.Option(help="Where it comes from.")] = "millrace-cli",
    occurred_at: Annotated[str | None, typer.Option(help="When: 2026-02-16T10:00:00Z; default now.")] = None,
    key: Annotated[str | None, typer.Option(help="The idempotency key; default: made of what is sent.")] = None,
    payload: Annotated[str | None, typer.Option(help="JSON, @file, or - for standard input.")] = None,
    file: Annotated[str | None, typer.Option(help="Many events, one JSON object a line.")] = None,
) -> None:
    """Put one event, or those of a file. To put the same again under its key is safe."""
    if file is not None:
        drafts = events.objects_of(file)
    elif kind is None or payload is None:
        raise Usage("Give --type and --payload for one event, or --file for many.")
    else:
        when = occurred_at or utc(call.world.around.clock()).replace(" ", "T") + "Z"
        draft = {"event_type": kind, "event_version": version, "occurred_at": when, "source": source}
        draft["payload"] = events.value_of(payload, "--payload")
        drafts = [draft if key is None else {**draft, "idempotency_key": key}]
    results: list[dict[str, Any]] = []
    with call.open(Catalog) as hub:
        for batch in events.batches(drafts):
            results += [hub.put(domain, batch[0])] if len(drafts) == 1 else hub.put_many(domain, batch)
    _show(call, results)


def read(
    call: HubCall,
    domain: Domain,
    after: Annotated[int, typer.Option(min=0, help="Start after this position.")] = 0,
    kind: Annotated[str | None, typer.Option("--type", help="Only events of this type.")] = None,
    count: Limit = None,
) -> None:
    """Read a domain's events by position, up to the newest. Needs the role operator."""
    with call.open(Catalog) as hub:
        found = list(islice(hub.read(domain, after, kind=kind), count))
    if call.as_json:
        for event in found:
            print_json(event)
        return
    rows = [
        (one["position"], utc(one["committed_ms"]), one["type"], short((one.get("content") or {}).get("payload")))
        for one in found
    ]
    if not print_table(("position", "committed (UTC)", "type", "payload"), rows):
        err.print("No events there.")


def _show(call: HubCall, results: list[dict[str, Any]]) -> None:
    rejected = [one for one in results if one["status"] != "committed"]
    if call.as_json:
        for one in results:
            print_json(one)
    else:
        for one in rejected:
            err.print(f"rejected: {one.get('reason')} {short(one.get('errors'))}", style="red", markup=False)
        last = max((one["sequence_position"] for one in results if one not in rejected), default=None)
        place = "" if last is None else f", the last at position {last}"
        err.print(f"{len(results) - len(rejected)} committed, {len(rejected)} rejected{place}.")
    if rejected:
        raise typer.Exit(1)


app = group(
    "Versioned events of data domains.",
    """millrace catalog put orders --type order.placed --payload '{"order": 17}' --key order-17""",
    "millrace catalog read orders --count 5",
    put=on_hub(put),
    read=on_hub(read),
)
