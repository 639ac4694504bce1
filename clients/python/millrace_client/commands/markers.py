"""`millrace markers`: points on a runtime's map that many clients may change."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from millrace_client.commands.groups import group
from millrace_client.commands.hub_command import HubCall, on_hub
from millrace_client.commands.output import err, print_json, print_table, utc
from millrace_client.commands.streams import RuntimeId, with_runtime
from millrace_client.errors import Usage
from millrace_client.streams.markers import Marker, Position
from millrace_client.streams.runtime import Runtime

MarkerId = Annotated[str, typer.Argument(help="The marker.")]
At = Annotated[
    str, typer.Option("--at", help="Latitude, longitude and, if you like, metres: 47.1,8.2 or 47.1,8.2,540.")
]
Revision = Annotated[int | None, typer.Option(min=1, help="Refuse if it is not at this revision.")]


def list_markers(
    call: HubCall, runtime_id: RuntimeId, topic: Annotated[str | None, typer.Option(help="Only this topic.")] = None
) -> None:
    """List a runtime's markers; with --json one a line."""

    async def do(runtime: Runtime) -> list[Marker]:
        return [one async for one in runtime.markers.list(topic)]

    found = with_runtime(call, runtime_id, do)
    if call.as_json:
        for one in found:
            print_json(asdict(one))
        return
    rows = [(one.marker_id, one.label, place(one.position), one.revision, utc(one.updated_ts_ms)) for one in found]
    if not print_table(("marker", "label", "at", "revision", "changed (UTC)"), rows):
        err.print("No markers.")


def put(
    call: HubCall,
    runtime_id: RuntimeId,
    marker_id: MarkerId,
    at: At,
    label: Annotated[str | None, typer.Option(help="Its label; default: its id.")] = None,
    topic: Annotated[str | None, typer.Option(help="Its topic.")] = None,
) -> None:
    """Make a marker."""
    position = position_of(at)

    async def do(runtime: Runtime) -> Marker:
        return await runtime.markers.create(label or marker_id, position, marker_id=marker_id, topic_id=topic)

    _done(call, with_runtime(call, runtime_id, do))


def move(call: HubCall, runtime_id: RuntimeId, marker_id: MarkerId, at: At, revision: Revision = None) -> None:
    """Move a marker. Without --revision it is moved over whatever another client did."""
    position = position_of(at)

    async def do(runtime: Runtime) -> Marker:
        return await runtime.markers.move(marker_id, position, revision, retry=revision is None)

    _done(call, with_runtime(call, runtime_id, do))


def delete(call: HubCall, runtime_id: RuntimeId, marker_id: MarkerId, revision: Revision = None) -> None:
    """Delete a marker."""
    deleted = with_runtime(call, runtime_id, lambda runtime: runtime.markers.delete(marker_id, revision))
    if call.as_json:
        print_json({"marker_id": marker_id, "deleted": deleted})
    else:
        err.print("Deleted." if deleted else "There was no such marker.")


def position_of(text: str) -> Position:
    try:
        lat, lon, *rest = (float(part) for part in text.split(","))
        return Position(lat, lon, *rest)
    except (ValueError, TypeError) as error:
        raise Usage(f"--at {text}: write latitude and longitude, such as 47.1,8.2.") from error


def place(position: Position) -> str:
    return f"{position.lat},{position.lon}" + ("" if position.alt_m is None else f",{position.alt_m}")


def _done(call: HubCall, marker: Marker) -> None:
    if call.as_json:
        print_json(asdict(marker))
    else:
        err.print(f"{marker.marker_id} is at {place(marker.position)}, revision {marker.revision}.", markup=False)


app = group(
    "Markers of a runtime.",
    "millrace markers put pi-7 camp --at 47.1,8.2",
    "millrace markers move pi-7 camp --at 47.2,8.2",
    "millrace markers list pi-7",
    "millrace markers delete pi-7 camp",
    list=on_hub(list_markers),
    put=on_hub(put),
    move=on_hub(move),
    delete=on_hub(delete),
)
