"""Connects to the hub, and again when the connection is lost: with backoff and fresh tokens, until it is closed."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable

import jwt

from millrace_client.errors import Refused, Usage
from millrace_client.sync.protocol import Json, Lost, RateLimited
from millrace_client.sync.settings import Backoff, Settings, Status
from millrace_client.sync.wire import Socket, open_socket

Token = str | Callable[[], str] | Callable[[], Awaitable[str]]

MOST_REFUSED_TOKENS = 3


class ClientClosed(Exception):
    """The client was closed while someone waited for a connection."""


class Dialer:
    """Connections for one purpose, one after the other."""

    def __init__(
        self,
        url: str,
        project: str | None,
        token: Token,
        client_id: str | None,
        settings: Settings,
        notify: Callable[[Status], None],
        closing: asyncio.Event,
    ) -> None:
        self.settings = settings
        self.notify = notify
        self._url = url
        self._project = project
        self._token = token
        self._client_id = client_id
        self._closing = closing
        self._backoff = Backoff(settings)
        self._hint = 0.0
        self._dialled = False
        self._connected_at: float | None = None
        self._in_use = ""
        self._refused: tuple[str, Refused] | None = None
        self._refusals = 0
        self._socket: Socket | None = None

    async def dial(self, on_event: Callable[[Json], None], stirred: asyncio.Event) -> Socket:
        """A new connection, however long it takes. Raises `ClientClosed`, or an error that no other try would cure."""
        if self._connected_at is not None and self._healthy_since(self._connected_at):
            self._backoff.reset()
        self._connected_at = None
        while True:
            if self._dialled:
                await self._wait()
            self._dialled = True
            if self._closing.is_set():
                raise ClientClosed
            self._in_use = await self._fresh_token()
            try:
                return await self._try(on_event, stirred)
            except Lost as error:
                self.lost(error)
            except Refused as error:
                self._token_refused(error)

    async def pause(self, seconds: float) -> None:
        """Sleep, but wake up when the client closes."""
        waits = [
            asyncio.ensure_future(self.settings.sleep(seconds)),
            asyncio.ensure_future(self._closing.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def slow_down(self, error: RateLimited) -> None:
        """As long as the hub asked for; on the same connection."""
        self.notify(Status("waiting", str(error)))
        await self.pause(error.retry_after or self.settings.first_pause)

    def lost(self, error: Lost) -> None:
        """Say so; the next `dial` waits at least as long as the hub asked for."""
        self._hint = error.retry_after
        if not self._closing.is_set():
            self.notify(Status("waiting", str(error)))

    def refused(self, error: Refused) -> None:
        """
        Raises the error again, unless only the connection is refused.

        `auth_failed` after a greeting: the token expired, or the hub has forgotten the connection. The next greeting
        tells which.
        """
        if error.code != "auth_failed":
            raise error
        self.lost(Lost(str(error)))

    def _token_refused(self, error: Refused) -> None:
        """Raises the error again, unless it is about a token and there may be a better one."""
        self._refusals += 1
        if error.code != "auth_failed" or isinstance(self._token, str) or self._refusals > MOST_REFUSED_TOKENS:
            raise error
        self._refused = (self._in_use, error)
        self.notify(Status("waiting", str(error)))

    async def hang_up(self) -> None:
        if self._socket is not None:
            await self._socket.close()

    async def _try(self, on_event: Callable[[Json], None], stirred: asyncio.Event) -> Socket:
        introduction: Json = {"token": self._in_use, "client_id": self._client_id or client_of(self._in_use)}
        if self._project is not None:
            introduction["project"] = self._project
        self.notify(Status("connecting", self._url))
        self._socket = await open_socket(self._url, introduction, self.settings, on_event, stirred)
        if self._closing.is_set():
            await self._socket.close()
            raise ClientClosed
        self._connected_at = self.settings.clock()
        self._refused, self._refusals = None, 0
        self.notify(Status("connected", self._url))
        return self._socket

    async def _fresh_token(self) -> str:
        if isinstance(self._token, str):
            return self._token
        token = await ask_for(self._token)
        if self._refused is not None and self._refused[0] == token:
            raise self._refused[1]
        return token

    async def _wait(self) -> None:
        seconds, self._hint = max(self._backoff.next(), self._hint), 0.0
        await self.pause(seconds)

    def _healthy_since(self, moment: float) -> bool:
        return self.settings.clock() - moment >= self.settings.healthy_after


async def ask_for(token: Token) -> str:
    if isinstance(token, str):
        return token
    made = token()
    return await made if inspect.isawaitable(made) else made


def client_of(token: str) -> str:
    """Whose token it is. Raises `Usage` if it does not say."""
    try:
        return str(jwt.decode(token, options={"verify_signature": False})["client_id"])
    except (jwt.InvalidTokenError, KeyError) as error:
        raise Usage("This is no token, or it does not say whose it is (client_id).") from error
