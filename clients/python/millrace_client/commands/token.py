"""`millrace token`: a token for the hub that runs on this machine."""

from __future__ import annotations

import json
import re
import time
from typing import Annotated

import typer

from millrace_client import local_stack
from millrace_client.commands.options import JsonOutput
from millrace_client.errors import Usage
from millrace_client.tokens import ROLES, Grant, sign_claims

KNOWN_ROLES = {"producer", "consumer", "operator"}


def token(
    client: Annotated[str, typer.Option(help="The client_id of its bearer.")],
    project: Annotated[list[str] | None, typer.Option(help="A project it opens; may be repeated.")] = None,
    partition: Annotated[
        list[str] | None, typer.Option(help="A partition, or a prefix ending in *; may be repeated.")
    ] = None,
    team: Annotated[
        str | None, typer.Option(help="The team whose journal it delivers to; alone it opens that journal only.")
    ] = None,
    role: Annotated[
        list[str] | None, typer.Option(help="producer, consumer or operator; default producer and consumer.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="The tenant; the hub's default is `default`.")] = None,
    ttl: Annotated[str, typer.Option(help="How long it is valid: 90s, 30m, 12h, 7d.")] = "12h",
    as_json: JsonOutput = False,
) -> None:
    """
    Print a token for the hub that runs on this machine, signed with its secret.

    Examples:

      millrace token --client C1 --project demo --partition '*'

      millrace token --client laptop --team acme
    """
    if not client or not all(project or []) or team == "":
        raise Usage("--client, --project and --team must not be empty.")
    if team is None and not (project and partition):
        raise Usage("Give --project and --partition, or --team for a token that delivers captured events.")
    if project and not partition:
        raise Usage("Give --partition too: without one, no event of the project can be read or written.")
    partitions = list(partition or [])
    if team is not None and "*" not in partitions:
        partitions.append(f"team:{team}")
    unknown = set(role or []) - KNOWN_ROLES
    if unknown:
        raise Usage(f"No such role: {', '.join(sorted(unknown))}. Known: {', '.join(sorted(KNOWN_ROLES))}.")
    grant = Grant(client, project or [], partitions, role or ROLES, tenant, seconds_of(ttl), team)
    claims = grant.claims(int(time.time()))
    signed = sign_claims(claims, local_stack.required().secret())
    print(json.dumps({"token": signed, "claims": claims}) if as_json else signed)


def seconds_of(ttl: str) -> int:
    match = re.fullmatch(r"([1-9]\d{0,6})([smhd])", ttl)
    if match is None:
        raise Usage(f"--ttl {ttl} is not a duration; write it as 90s, 30m, 12h or 7d.")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]
