"""`millrace grants`: see sensitive values of a runtime for a while, for a reason that is recorded."""

from __future__ import annotations

from typing import Annotated

import typer

from millrace_client.commands.groups import group
from millrace_client.commands.hub_command import HubCall, on_hub
from millrace_client.commands.output import err, print_json, print_table, utc
from millrace_client.commands.token import seconds_of

RuntimeId = Annotated[str, typer.Argument(help="The runtime.")]
GrantId = Annotated[str, typer.Argument(help="The grant's id, as `list` shows it.")]


def list_grants(call: HubCall, runtime_id: RuntimeId) -> None:
    """List a runtime's grants; with --json one a line."""
    with call.operator() as hub:
        grants = hub.grants.list(runtime_id)
    if call.as_json:
        for grant in grants:
            print_json(grant)
        return
    rows = [(one["grant_id"], one["who"], one["status"], utc(one["expires_ts_ms"]), one["reason"]) for one in grants]
    if not print_table(("grant", "who", "status", "until (UTC)", "reason"), rows):
        err.print("No grants.")


def make(
    call: HubCall,
    runtime_id: RuntimeId,
    reason: Annotated[str, typer.Option(help="Why; it stays in the audit.")],
    ttl: Annotated[str, typer.Option(help="How long: 90s, 30m, 1h.")] = "10m",
    stream: Annotated[list[str] | None, typer.Option(help="Only this stream; may be repeated.")] = None,
    field: Annotated[list[str] | None, typer.Option(help="Only this field; may be repeated.")] = None,
) -> None:
    """Keep raw sensitive values from now on, for as long as the grant lasts."""
    with call.operator() as hub:
        grant = hub.grants.make(runtime_id, reason, seconds_of(ttl), streams=stream or None, fields=field or None)
    if call.as_json:
        print_json(grant)
    else:
        err.print(f"{grant['grant_id']} until {utc(grant['expires_ts_ms'])} UTC.", markup=False)


def read(call: HubCall, runtime_id: RuntimeId, grant_id: GrantId) -> None:
    """Print what was kept under a grant. Every call is in the audit."""
    with call.operator() as hub:
        entries = list(hub.grants.read(runtime_id, grant_id))
    if call.as_json:
        for entry in entries:
            print_json(entry)
        return
    rows = [
        (entry["stream_id"], entry["seq_no"], value["path"], value["value"])
        for entry in entries
        for value in entry["values"]
    ]
    if not print_table(("stream", "seq_no", "field", "value"), rows):
        err.print("Nothing was kept under this grant yet.")


def revoke(call: HubCall, runtime_id: RuntimeId, grant_id: GrantId) -> None:
    """End a grant now; what was kept under it can no longer be read by anybody."""
    with call.operator() as hub:
        grant = hub.grants.revoke(runtime_id, grant_id)
    if call.as_json:
        print_json(grant)
    else:
        err.print(f"{grant_id} is {grant['status']}.", markup=False)


app = group(
    "Break-glass grants: see sensitive values for a while. Needs the role operator; all of it is audited.",
    "millrace grants make pi-7 --reason 'ticket 4711' --ttl 10m --field peer_id",
    "millrace grants list pi-7",
    list=on_hub(list_grants),
    make=on_hub(make),
    read=on_hub(read),
    revoke=on_hub(revoke),
)
