"""`millrace targets`: how the targets of a hub fare, who drains them, and what is due or stuck."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from millrace_client.commands.connection import Asked, World
from millrace_client.commands.journal_options import Home, Override
from millrace_client.commands.options import JsonOutput, Url
from millrace_client.commands.output import out

OperatorToken = Annotated[str, typer.Option("--token", envvar="MILLRACE_TOKEN", help="A bearer token of an operator.")]


def targets(
    ctx: typer.Context,
    token: OperatorToken,
    url: Url = None,
    override: Override = False,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """Show the hub's targets: who drains which since when, what is due, and what is stuck."""
    world: World = ctx.obj
    with world.connect(Asked(url, token, override, home)) as hub:
        status = hub.delivery_status()
    if as_json:
        print(json.dumps(status))
        return
    table = Table(Column("target", overflow="fold"), "delivered", "open", "given up", "state", box=None)
    for one in status["delivery_targets"]:
        counts = one["deliveries"]
        waiting = counts["pending"] + counts["rejected"] + counts["transient"]
        delivered, given_up = str(one["delivered_count"]), str(counts["terminal_failed"])
        state = describe(one, int(time.time() * 1000))
        table.add_row(escape(one["target_id"]), delivered, str(waiting), given_up, escape(state))
    out.print(table)


def describe(target: dict[str, Any], now_ms: int) -> str:
    """What an operator wants to know first, and whether the requests go out unsigned."""
    return _state(target, now_ms) + (", unsigned" if target.get("unsigned") else "")


def _state(target: dict[str, Any], now_ms: int) -> str:
    if target["stuck"]:
        return f"stuck: {target['stuck']}"
    if target["paused"]:
        return f"paused: {target['paused_why']}"
    if target["drain"]:
        return f"drained by {target['drain']['holder']} for {_seconds(target['drain']['since_ms'], now_ms)}"
    if target["blocked"]:
        return f"blocked: {target['blocked_detail'] or target['blocked']}"
    if target["waits_since_ms"]:
        return f"waits for its turn for {_seconds(target['waits_since_ms'], now_ms)}"
    if target["has_due"]:
        return "due: " + ", ".join(f"{one['contract']} {one['scope']}" for one in target["due"])
    return "idle"


def _seconds(since_ms: int, now_ms: int) -> str:
    return f"{max(0, now_ms - since_ms) // 1000} s"
