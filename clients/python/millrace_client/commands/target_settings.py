"""`millrace targets put`: make a target, or change what is given of one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from millrace_client.commands.hub_command import HubCall
from millrace_client.commands.output import err, print_json
from millrace_client.errors import Refused, Usage
from millrace_client.operator.hub import Operator


def put(
    call: HubCall,
    target_id: Annotated[str, typer.Argument(help="The target's id.")],
    kind: Annotated[str | None, typer.Option("--type", help="teamspace, external or stub.")] = None,
    target_url: Annotated[str | None, typer.Option("--to", help="Where to: https and a public address.")] = None,
    mode: Annotated[str | None, typer.Option(help="batch, or webhook: one event a request.")] = None,
    source: Annotated[
        list[str] | None, typer.Option(help="What it hears of: 'sync demo', 'realtime *'; may be repeated.")
    ] = None,
    family: Annotated[list[str] | None, typer.Option(help="Only types that begin so; may be repeated.")] = None,
    start: Annotated[str | None, typer.Option(help="In a ledger that is new to it: retained or now.")] = None,
    max_per_second: Annotated[float | None, typer.Option(help="Events per second at most; 0 for no limit.")] = None,
    auth_secret: Annotated[
        str | None, typer.Option(envvar="MILLRACE_AUTH_SECRET", help="Its bearer token; better in the environment.")
    ] = None,
    signing_secret: Annotated[
        str | None, typer.Option(envvar="MILLRACE_SIGNING_SECRET", help="whsec_…; better in the environment.")
    ] = None,
) -> None:
    """Make a target; of one that exists, change what is given here and leave the rest."""
    settings = {
        "type": kind,
        "url": target_url,
        "mode": mode,
        "sources": [source_of(one) for one in source] if source else None,
        "families": family or None,
        "start": start,
        "auth_secret": auth_secret,
        "signing_secret": signing_secret,
    }
    given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    if max_per_second is not None:
        given["max_per_second"] = max_per_second or None
    if not given:
        raise Usage("Say what to set; `millrace targets put --help` lists it.")
    sources = given.get("sources", ())
    with call.open(Operator, *(one["scope"] for one in sources if one["contract"] == "sync")) as hub:
        write = hub.targets.patch if _exists(hub, target_id) else hub.targets.put
        target = write(target_id, given)
    if call.as_json:
        print_json(target)
    else:
        err.print(f"{target_id} is set, revision {target['revision']}.", markup=False)


def _exists(hub: Operator, target_id: str) -> bool:
    try:
        hub.targets.get(target_id)
    except Refused as error:
        if error.status != 404:
            raise
        return False
    return True


def source_of(text: str) -> dict[str, str]:
    """`sync demo` as the hub takes it."""
    contract, _, scope = text.replace("/", " ", 1).partition(" ") if " " not in text else text.partition(" ")
    if not scope:
        raise Usage(f"--source {text}: write a contract and a scope, such as 'sync demo'.")
    return {"contract": contract, "scope": scope.strip()}
