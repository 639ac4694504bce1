"""`millrace console`: the hub's console in a browser, with a token that it need not be asked for."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import Annotated
from urllib.parse import quote

import typer

from millrace_client.commands.hub_command import HubCall
from millrace_client.commands.output import err, print_json

HELP = "Open the hub's console in a browser. The token is in the part of the address that no server is sent."
EXAMPLES = ("millrace console --print",)


def console(
    call: HubCall,
    only_print: Annotated[bool, typer.Option("--print", help="Only print the address.")] = False,
) -> None:
    hub = call.world.hub(call.asked)
    address = console_address(hub.url, hub.everything()())
    if call.as_json:
        print_json({"console": address})
    elif only_print or not _opened(address):
        print(address)
    else:
        err.print(f"Opened {hub.url}/console in the browser.", markup=False)


def console_address(url: str, token: str) -> str:
    """The token is in the fragment: browsers keep it to themselves, so it is in no log."""
    return f"{url.rstrip('/')}/console#token={quote(token, safe='')}"


def _opened(address: str) -> bool:
    """A browser in the terminal would show the token in its own way; only a windowed one is asked."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
