"""Which hub a command talks to: the one that was named, else the one that runs on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from millrace_client import local_stack
from millrace_client.errors import NoHub
from millrace_client.journal.session import Surroundings
from millrace_client.sync.http import Client
from millrace_client.tokens import Grant, sign


@dataclass(frozen=True, slots=True)
class World:
    """What the commands reach outside themselves for."""

    transport: httpx.BaseTransport | None = None
    sleep: Callable[[float], None] = time.sleep
    around: Surroundings = field(default_factory=Surroundings)

    def connect(self, url: str | None, token: str | None, project: str | None = None) -> Client:
        """A client for `project`; without one, for what needs no token. Raises `NoHub`."""
        otherwise = "name one with --url" + (" and --token" if project is not None else "")
        address = url or local_stack.required(otherwise).http_url
        if token is None and project is not None:
            token = _mint(address, project)
        return Client(address, token, transport=self.transport, sleep=self.sleep)


def _mint(url: str, project: str) -> str:
    stack = local_stack.find()
    if stack is None or stack.http_url.rstrip("/") != url.rstrip("/"):
        raise NoHub(f"A token for {url} is missing: pass --token, or set MILLRACE_TOKEN.")
    return sign(Grant("millrace-cli", [project]), stack.secret())
