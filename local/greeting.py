"""What a person sees once the stack answers: where it is, and two commands to paste."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

from local.stack import Stack
from millrace_client.commands.console import console_address
from millrace_client.local_stack import secret_of, token_for
from millrace_client.tokens import Grant, sign

PROJECT = "demo"
EVERY_ROLE = ("producer", "consumer", "operator")
HEADERS = "-H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json'"


def greet(running: Stack, console: Console) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row("HTTP", running.http_url)
    if running.websocket_url:
        table.add_row("WebSocket", running.websocket_url)
    table.add_row("API pages", f"{running.http_url}/docs")
    table.add_row("AWS endpoint", f"{running.endpoint_url} ({running.region})")
    console.print("\n[bold green]Millrace is running.[/bold green]\n")
    console.print(table)
    console.print(
        "\nThe console; its address holds a token of an operator of project demo, good for 12 hours:\n", style="bold"
    )
    console.print(console_of(running), markup=False)
    console.print("\nTry it:\n", style="bold")
    for command in commands(running):
        console.print(command, markup=False)


def console_of(running: Stack) -> str:
    """The console's address with a token that works there."""
    return console_address(running.http_url, operator_token(running))


def operator_token(running: Stack) -> str:
    secret = secret_of(running.endpoint_url, running.region, running.secret_arn)
    return sign(Grant("console", [PROJECT], roles=EVERY_ROLE), secret)


def commands(running: Stack) -> list[str]:
    """Shell commands that work as they are: set a token, submit an event, read it back."""
    token = token_for(running.endpoint_url, running.region, running.secret_arn, client="C1", projects=[PROJECT])
    base = f"{running.http_url}/v1/projects/{PROJECT}"
    event = {"id": "first", "partitions": ["p1"], "event": {"type": "note", "payload": {"text": "hello"}}}
    return [
        f"TOKEN={token}",
        f"curl -sS {HEADERS} '{base}/submit_events' -d '{json.dumps({'events': [event]})}'",
        f"curl -sS {HEADERS} '{base}/sync' -d '{json.dumps({'partitions': ['p1'], 'since_committed_id': 0})}'",
    ]
