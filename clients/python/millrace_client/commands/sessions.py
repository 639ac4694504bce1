"""`millrace sessions`: publish events of a realtime session, replay them, read the transcript, watch it live."""

from __future__ import annotations

import uuid
from itertools import islice
from typing import Annotated, Any

import typer

from millrace_client.commands.groups import group
from millrace_client.commands.hub_command import HubCall, Limit, on_hub, on_websocket
from millrace_client.commands.output import err, print_json, print_table, short, utc
from millrace_client.commands.tails import run_tail
from millrace_client.errors import Usage
from millrace_client.sessions import Realtime
from millrace_client.sync import events
from millrace_client.sync.tailing import TailedEvent

SessionId = Annotated[str, typer.Argument(help="The session.")]
After = Annotated[int, typer.Option(min=0, help="Start after this sequence.")]


def publish(
    call: HubCall,
    session_id: SessionId,
    kind: Annotated[str | None, typer.Option("--type", help="The event's type, such as call.started.")] = None,
    payload: Annotated[str | None, typer.Option(help="JSON, @file, or - for standard input.")] = None,
    event_id: Annotated[str | None, typer.Option("--id", help="The event's id; made up if left out.")] = None,
    ts: Annotated[str | None, typer.Option(help="When: 2026-02-16T10:00:00.000Z; default now.")] = None,
    file: Annotated[str | None, typer.Option(help="Many events, one whole JSON object a line.")] = None,
) -> None:
    """Publish an event, or those of a file. With its --id and --ts, to publish it again is safe."""
    if file is not None:
        drafts = [{"sessionId": session_id} | one for one in events.objects_of(file)]
    elif kind is None or payload is None:
        raise Usage("Give --type and --payload for one event, or --file for many.")
    else:
        draft = {
            "eventId": event_id or str(uuid.uuid4()),
            "sessionId": session_id,
            "ts": ts or utc(call.world.around.clock()).replace(" ", "T") + ".000Z",
            "type": kind,
            "payload": events.value_of(payload, "--payload"),
            "schemaVersion": "1.0",
        }
        drafts = [draft]
    results: list[dict[str, Any]] = []
    with call.open(Realtime) as hub:
        for batch in events.batches(drafts):
            results += [hub.publish(batch[0])] if len(drafts) == 1 else hub.publish_many(batch)
    _published(call, results)


def _published(call: HubCall, results: list[dict[str, Any]]) -> None:
    refused = [one for one in results if not one["ok"]]
    if call.as_json:
        for one in results:
            print_json(one)
    else:
        for one in results[:20]:
            if one["ok"]:
                known = " (it was there already)" if one["deduped"] else ""
                err.print(f"{one['event']['eventId']} is at sequence {one['event']['sequence']}{known}.", markup=False)
        for one in refused:
            err.print(f"refused: {one['code']}: {one['message']} {short(one['errors'])}", style="red", markup=False)
    if refused:
        raise typer.Exit(1)


def replay(call: HubCall, session_id: SessionId, after: After = 0, count: Limit = None) -> None:
    """Print every event after a sequence, once each; with --json one a line."""
    with call.open(Realtime) as hub:
        found = list(islice(hub.replay(session_id, after), count))
    if call.as_json:
        for event in found:
            print_json(event)
        return
    rows = [(one["sequence"], one["ts"], one["type"], short(one["payload"])) for one in found]
    if not print_table(("sequence", "ts", "type", "payload"), rows):
        err.print("No events there.")


def transcript(
    call: HubCall,
    session_id: SessionId,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Read the whole log again; needs an operator.")] = False,
) -> None:
    """Print what was said: one line per utterance."""
    with call.open(Realtime) as hub:
        answer = hub.transcript(session_id, rebuild=rebuild)
    if call.as_json:
        print_json(answer)
        return
    rows = [
        (f"{one['startMs'] / 1000:.1f} s", one["speaker"], one["text"] if one["final"] else f"{one['text']} …")
        for one in answer["utterances"]
    ]
    if not print_table(("at", "speaker", "text"), rows):
        err.print("Nothing was said.")
    if not answer["complete"]:
        err.print("Text of events that were pruned is missing.", style="yellow")


def tail(call: HubCall, session_id: SessionId, after: After = 0, count: Limit = None) -> None:
    """Print what is stored after a sequence, then what is published, until Ctrl-C. Gaps are said in red."""

    def show(one: TailedEvent) -> None:
        if call.as_json:
            print_json(one.event)
        else:
            event = one.event
            print(f"{one.position:>8}  {event['ts']}  {event['type']}  {short(event['payload'])}", flush=True)

    run_tail(call.websocket(), lambda client: client.session(session_id, after, on_gap="yield"), show, count)


def checkpoint(
    call: HubCall,
    session_id: SessionId,
    consumer: Annotated[str, typer.Option(help="Whose place it is: the consumer's id.")],
    event_id: Annotated[str, typer.Option("--id", help="The last event that the consumer is done with.")],
    ts: Annotated[str, typer.Option(help="That event's ts.")],
    sequence: Annotated[int | None, typer.Option(min=1, help="That event's sequence.")] = None,
) -> None:
    """Remember how far a consumer is. It never goes back."""
    with call.open(Realtime) as hub:
        applied = hub.checkpoint(session_id, consumer, {"eventId": event_id, "ts": ts, "sequence": sequence})
    if call.as_json:
        print_json({"applied": applied})
    else:
        err.print("Remembered." if applied else "The consumer was further already; nothing was changed.")


def metrics(call: HubCall) -> None:
    """Count the tenant's events: emitted, invalid, deduped."""
    with call.open(Realtime) as hub:
        print_json(hub.metrics())


def schema(call: HubCall, kind: Annotated[str, typer.Argument(metavar="TYPE", help="An event type.")]) -> None:
    """Print the JSON Schema of a type of event."""
    with call.open(Realtime) as hub:
        print_json(hub.schema(kind))


app = group(
    "Realtime sessions: publish, replay, transcript, live tail.",
    """millrace sessions publish call-7 --id evt-1 --ts 2026-02-16T10:00:00.000Z --type transcript.final --payload """
    """'{"callId": "c1", "utteranceId": "u1", "speaker": "user", "text": "Hello", "startMs": 0, "endMs": 900}'""",
    "millrace sessions replay call-7",
    "millrace sessions transcript call-7",
    "millrace sessions tail call-7 --count 1",
    "millrace sessions checkpoint call-7 --consumer ui --id evt-1 --ts 2026-02-16T10:00:00.000Z",
    "millrace sessions schema call.started",
    publish=on_hub(publish),
    replay=on_hub(replay),
    transcript=on_hub(transcript),
    tail=on_websocket(tail),
    checkpoint=on_hub(checkpoint),
    metrics=on_hub(metrics),
    schema=on_hub(schema),
)
