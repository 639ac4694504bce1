"""`millrace overview`, `connections` and `degraded`: how the hub stands."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from millrace_client.commands.hub_command import HubCall
from millrace_client.commands.output import err, out, print_fields, print_json, print_table

OVERVIEW = "Show how the hub stands: lag of each stage, targets, connections, and what is wrong with what helps."
CONNECTIONS = "List open connections and what they are subscribed to; with --json one a line."
DEGRADED = "List a runtime's subscriptions that met a gap, and its streams whose first events are gone."
COLOURS = {"error": "red", "warning": "yellow"}


def overview(call: HubCall) -> None:
    with call.operator() as hub:
        answer = hub.standing.overview()
    if call.as_json:
        print_json(answer)
        return
    names = ("worst_lag_seconds", "lag_events", "ledgers_behind", "gaps")
    rows = [(stage, *(lag.get(name, "") for name in names)) for stage, lag in answer["stages"].items()]
    print_table(("stage", "seconds behind", "events behind", "ledgers behind", "gaps"), rows)
    minutes = answer["events_per_minute"]["minutes"]
    print_fields(
        [
            ("events, last hour", sum(one["events"] for one in minutes)),
            ("targets", ", ".join(f"{count} {state}" for state, count in answer["targets"].items())),
            ("connections", f"{answer['connections']} with {answer['subscriptions']} subscriptions"),
            ("degraded", answer["degraded"]),
            ("looked at", f"{answer['looked_at']} ledgers{', there are more' if answer['more'] else ''}"),
        ]
    )
    _problems(answer["problems"])


def _problems(problems: list[dict[str, Any]]) -> None:
    for one in problems:
        out.print(f"{one['severity']}: {one['what']}", style=COLOURS.get(one["severity"]), markup=False)
        out.print(f"  try: {one['help']}", markup=False)
    if not problems:
        err.print("Nothing is wrong.", style="green")


def connections(
    call: HubCall, project: Annotated[str | None, typer.Option(help="Only those of this project.")] = None
) -> None:
    with call.operator("sync", project or "") as hub:
        found = list(hub.standing.connections(project))
    if call.as_json:
        for one in found:
            print_json(one)
        return
    rows = [
        (
            one["connection"],
            one["client_id"],
            one["project"],
            ", ".join(f"{each['contract']} {each['scope']}" for each in one["subscriptions"]),
        )
        for one in found
    ]
    if not print_table(("connection", "client", "project", "subscribed to"), rows):
        err.print("Nobody is connected.")


def degraded(call: HubCall, runtime_id: Annotated[str, typer.Argument(help="The runtime.")]) -> None:
    with call.operator() as hub:
        pages = list(hub.standing.degraded(runtime_id))
    subscriptions = [one for page in pages for one in page["degraded"]]
    gaps = [one for page in pages for one in page.get("gaps", ())]
    if call.as_json:
        print_json({"degraded": subscriptions, "gaps": gaps})
        return
    rows = [(one["stream_id"], "subscription", one["subscription"], one["floor"]) for one in subscriptions]
    rows += [(one["stream_id"], "stream", "", one["floor"]) for one in gaps]
    if not print_table(("stream", "what", "subscription", "kept from"), rows):
        err.print("None is degraded, and no stream has a gap.")
