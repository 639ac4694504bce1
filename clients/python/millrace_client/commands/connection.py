"""Which hub a command talks to: one server for all commands (D1), resolved before anything is sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from millrace.delivery.domain.authority import Bearer, ResolvedSyncTarget, normal, resolve
from millrace.ledger.domain.errors import Rejected
from millrace_client import local_stack
from millrace_client.errors import NoHub, Usage
from millrace_client.home import default_home
from millrace_client.journal.config import Config, load_server
from millrace_client.journal.identity import read_token
from millrace_client.journal.session import Surroundings
from millrace_client.local_stack import LocalStack
from millrace_client.sync.http import Client
from millrace_client.tokens import Grant, sign

CLIENT = "millrace-cli"
GUIDED = "demo"
EVERY_ROLE = ("producer", "consumer", "operator")
REFUSALS = 3
"""Tries where nobody listens: together they take less than two seconds."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a call says about its hub."""

    url: str | None = None
    token: str | None = field(default=None, repr=False)
    override: bool = False
    home: Path | None = None


@dataclass(frozen=True, slots=True)
class ChosenHub:
    """The hub of one call. `stack`: that hub, if it is the one that runs on this machine."""

    url: str
    token: str | None = field(repr=False)
    stack: LocalStack | None

    def bearer(self, project: str) -> Callable[[], str]:
        """The token that was given; else one for the project, made when it is asked for. Raises `NoHub`."""
        given = self.token
        if given is not None:
            return lambda: given
        if self.stack is None:
            raise NoHub(f"A token for {self.url} is missing: pass --token, or set MILLRACE_TOKEN.")
        secret = self.stack.secret()
        return lambda: sign(Grant(CLIENT, [project]), secret)

    def everything(self, *projects: str) -> Callable[[], str]:
        """
        The token that was given; else, of the local hub, one with every role and partition. Raises `NoHub`.

        A project must be named to be reached: these, and `demo`, which the guides use.
        """
        if self.token is not None or self.stack is None:
            return self.bearer("")
        secret = self.stack.secret()
        named = sorted({*projects, GUIDED, "*"})
        return lambda: sign(Grant(CLIENT, named, roles=EVERY_ROLE), secret)


@dataclass(frozen=True, slots=True)
class World:
    """What the commands reach outside themselves for."""

    transport: httpx.BaseTransport | None = None
    sleep: Callable[[float], None] = time.sleep
    around: Surroundings = field(default_factory=Surroundings)
    nap: Callable[[float], Awaitable[object]] = asyncio.sleep
    """As `sleep`, for commands that wait for several things at once."""

    def connect(self, asked: Asked, project: str | None = None) -> Client:
        """A client for `project`; without one, for what needs no token of its own. Raises `Usage`."""
        hub = self.hub(asked)
        return self.client(hub.url, hub.bearer(project)() if project is not None else hub.token)

    def client(self, url: str, token: str | None = None) -> Client:
        return Client(url, token, refusals=REFUSALS, transport=self.transport, sleep=self.sleep)

    def hub(self, asked: Asked) -> ChosenHub:
        """Nothing is sent to any hub. Raises `Usage` if settings disagree, `NoHub` if there is none."""
        resolved = self.resolved(asked)
        url = resolved.resolved_server_url
        if url is None:
            stack = local_stack.required("name one with --url, or set [sync].server_url")
            return ChosenHub(_address(stack), asked.token, stack)
        running = _running()
        if running is None or _address(running) == url:
            return ChosenHub(url, asked.token, running)
        if resolved.override_mode != "process_override":
            raise Usage(
                f"The server is {url}, but a hub runs in this folder too, {running.http_url}. "
                "Say with --url which of them is meant."
            )
        return ChosenHub(url, asked.token, None)

    def resolved(self, asked: Asked) -> ResolvedSyncTarget:
        """The server that the call, the configuration and the environment name; none, if none of them does."""
        home = asked.home or default_home()
        # Whoever names a server is not stopped by a configuration that cannot be read.
        config = Config(home) if asked.url is not None else load_server(home)
        identity = read_token(asked.token, config.team_slug)
        try:
            return resolve(
                configured=config.server_url,
                environment=self.around.environment,
                identity=identity.claims if identity else Bearer(None, config.team_slug),
                active_queue_scope=config.active_queue_scope(),
                home=str(home),
                process_override=asked.override,
                named=asked.url,
            )
        except Rejected as error:
            raise Usage(error.message) from error


def _running() -> LocalStack | None:
    """A file that was left behind is of no concern where a server is named."""
    try:
        return local_stack.find()
    except NoHub:
        return None


def _address(stack: LocalStack) -> str:
    try:
        return normal(str(stack.http_url), "http_url")
    except Rejected as error:
        file = local_stack.STACK_FILE
        raise NoHub(f"{file} cannot be read: {error.message} Start the hub again with `make run`.") from error
