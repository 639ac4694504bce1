"""`millrace streams`: emit into a runtime's streams, poll them, and watch them live."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import typer

from millrace_client.commands.groups import group
from millrace_client.commands.hub_command import HubCall, Limit, on_hub, on_websocket
from millrace_client.commands.output import err, print_fields, print_json, print_table, short, utc
from millrace_client.commands.tails import run_tail
from millrace_client.errors import Usage
from millrace_client.streams.negotiation import Negotiated
from millrace_client.streams.runtime import Runtime
from millrace_client.streams.sdk_errors import Emitted, SdkError
from millrace_client.sync import events
from millrace_client.sync.tailing import TailedEvent

RuntimeId = Annotated[str, typer.Argument(help="The runtime.")]
StreamId = Annotated[str, typer.Argument(help="The stream.")]
Done = TypeVar("Done")


def with_runtime(call: HubCall, runtime_id: str, do: Callable[[Runtime], Awaitable[Done]]) -> Done:
    """Does something with a runtime. A client that has not negotiated yet does so with the defaults, and says so."""

    async def run() -> Done:
        async with call.runtime(runtime_id) as runtime:
            try:
                return await do(runtime)
            except SdkError as error:
                if error.code != "SDK_RUNTIME_INVALID_STATE" or error.details.get("field") != "runtime_id":
                    raise
            err.print(f"Negotiating with {runtime_id} first, as desktop-full.", style="dim", markup=False)
            await runtime.negotiate("desktop-full")
            return await do(runtime)

    return asyncio.run(run())


def emit(
    call: HubCall,
    runtime_id: RuntimeId,
    stream_id: StreamId,
    kind: Annotated[str | None, typer.Option("--type", help="The event's type, such as acme.radio.tuned.")] = None,
    payload: Annotated[str, typer.Option(help="JSON, @file, or - for standard input.")] = "{}",
    event_id: Annotated[str | None, typer.Option("--id", help="The event's id; made up if left out.")] = None,
    severity: Annotated[str, typer.Option(help="debug, info, warn, error or critical.")] = "info",
    component: Annotated[str, typer.Option(help="The component it comes from.")] = "millrace-cli",
    file: Annotated[str | None, typer.Option(help="Many events, one JSON object a line.")] = None,
) -> None:
    """Emit an event, or those of a file. Retries go out under the same ids."""
    if file is not None:
        drafts = events.objects_of(file)
    elif kind is None:
        raise Usage("Give --type for one event, or --file for many.")
    else:
        draft = {"event_type": kind, "severity": severity, "source_component": component}
        draft["payload"] = events.value_of(payload, "--payload")
        drafts = [draft if event_id is None else {**draft, "event_id": event_id}]

    async def do(runtime: Runtime) -> list[Any]:
        stream = runtime.stream(stream_id)
        ready = [stream.draft(one) for one in drafts]
        return [await stream.emit(ready[0])] if len(ready) == 1 else list(await stream.emit(ready))

    results = with_runtime(call, runtime_id, do)
    refused = [one for one in results if not isinstance(one, Emitted)]
    for one in results:
        if isinstance(one, Emitted):
            told: dict[str, Any] = {"event_id": one.event_id, "seq_no": one.seq_no, "deduped": one.deduped}
        else:
            told = {"event_id": one.event_id, "error": one.error.as_json()}
        if call.as_json:
            print_json(told)
        elif "error" in told:
            err.print(f"{one.event_id}: {one.error}", style="red", markup=False)
        elif len(results) <= 20:
            known = " (it was there already)" if one.deduped else ""
            err.print(f"{one.event_id} is at {one.seq_no}{known}.", markup=False)
    if refused:
        raise typer.Exit(1)


def poll(
    call: HubCall,
    runtime_id: RuntimeId,
    stream_id: StreamId,
    cursor: Annotated[str | None, typer.Option(help="Go on after this place; default: from the oldest kept.")] = None,
    most: Annotated[int | None, typer.Option("--max", min=1, help="Events at most.")] = None,
) -> None:
    """Read the next events of a stream, and print the cursor to go on with on standard error."""
    batch = with_runtime(call, runtime_id, lambda runtime: runtime.stream(stream_id).poll(cursor, most))
    if call.as_json:
        found = {"events": list(batch.events), "next_cursor": batch.next_cursor, "dropped_count": batch.dropped_count}
        print_json(found)
        return
    if batch.dropped_count:
        err.print(f"Gap: {batch.dropped_count} events are no longer kept.", style="red")
    rows = [
        (one["seq_no"], utc(one.get("ts_ms")), one["event_type"], short(one.get("payload"))) for one in batch.events
    ]
    if not print_table(("seq_no", "ts (UTC)", "type", "payload"), rows):
        err.print("No events there.")
    err.print(f"Go on with --cursor {batch.next_cursor}", markup=False)


def follow(
    call: HubCall,
    runtime_id: RuntimeId,
    stream_id: StreamId,
    after: Annotated[int, typer.Option(min=0, help="Start after this seq_no.")] = 0,
    new: Annotated[bool, typer.Option("--new", help="Only what is emitted from now on.")] = False,
    count: Limit = None,
) -> None:
    """Print what is kept of a stream, then what is emitted, until Ctrl-C. Gaps are said in red."""

    def show(one: TailedEvent) -> None:
        if call.as_json:
            print_json(one.event)
        else:
            event = one.event
            at = utc(event.get("ts_ms"))
            print(f"{one.position:>8}  {at}  {event['event_type']}  {short(event.get('payload'))}", flush=True)

    start = None if new else after
    run_tail(call.websocket(), lambda client: client.stream(runtime_id, stream_id, start, on_gap="yield"), show, count)


def status(call: HubCall, runtime_id: RuntimeId) -> None:
    """Show what a runtime is doing: its streams, states and errors."""
    print_json(with_runtime(call, runtime_id, lambda runtime: runtime.status()))


def negotiate(
    call: HubCall,
    runtime_id: RuntimeId,
    profile: Annotated[
        str, typer.Option(help="desktop-full, desktop-local-runtime or embedded-alloc.")
    ] = "desktop-full",
    capability: Annotated[list[str] | None, typer.Option(help="A capability to ask for; may be repeated.")] = None,
) -> None:
    """Agree on limits and capabilities with the hub; replaces what this client agreed on before."""

    async def do(runtime: Runtime) -> Negotiated:
        return await runtime.negotiate(profile, capabilities=capability or ())  # type: ignore[arg-type]

    agreed = with_runtime(call, runtime_id, do)
    limits = {name: getattr(agreed.effective_limits, name) for name in agreed.effective_limits.__slots__}
    told = {"runtime_id": runtime_id, "effective_capabilities": agreed.effective_capabilities, "limits": limits}
    if call.as_json:
        print_json(told)
    else:
        print_fields([("capabilities", ", ".join(agreed.effective_capabilities)), *limits.items()])


def negotiated(
    call: HubCall,
    runtime_id: RuntimeId,
    every: Annotated[bool, typer.Option("--all", help="Of every client; needs the role operator.")] = False,
) -> None:
    """Show what holds for this client with a runtime: version, capabilities and limits."""
    if every:
        _every_negotiation(call, runtime_id)
        return
    with call.operator() as hub:
        answer = hub.standing.negotiation(runtime_id)
    if call.as_json:
        print_json(answer)
    else:
        capabilities = ", ".join(answer["effective_capabilities"])
        version = answer["active_contract_version"]
        print_fields([("version", version), ("capabilities", capabilities), *answer["effective_limits"].items()])


def _every_negotiation(call: HubCall, runtime_id: str) -> None:
    with call.operator() as hub:
        found = list(hub.standing.negotiations(runtime_id))
    if call.as_json:
        for one in found:
            print_json(one)
        return
    names = ("max_poll_events", "max_event_bytes", "max_batch_bytes")
    rows = [(one["client_id"], one["profile"], *(one["effective_limits"][name] for name in names)) for one in found]
    if not print_table(("client", "profile", "poll", "event bytes", "batch bytes"), rows):
        err.print("No client has negotiated with this runtime.")


app = group(
    "Streams of runtimes: emit, poll, live tail.",
    """millrace streams emit pi-7 main --type acme.radio.tuned --payload '{"mhz": 868}'""",
    "millrace streams poll pi-7 main --max 10",
    "millrace streams follow pi-7 main --count 1",
    "millrace streams negotiated pi-7",
    "millrace streams negotiated pi-7 --all",
    emit=on_hub(emit),
    poll=on_hub(poll),
    follow=on_websocket(follow),
    status=on_hub(status),
    negotiate=on_hub(negotiate),
    negotiated=on_hub(negotiated),
)
