"""One WebSocket connection to the hub: requests and their answers, broadcasts, heartbeats."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import count

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI, WebSocketException

from millrace_client.errors import ClientError, Unreachable
from millrace_client.sync.protocol import CLOSING, Json, Lost, RateLimited, end_of, error_of, frames, message, parse
from millrace_client.sync.settings import Settings

PASSING = {408, 429}
LARGEST_ANSWER = 4 * 1024 * 1024


class Socket:
    """
    A connection that is read all the time, whatever its user does.

    `on_event` gets each broadcast, and each event of a subscription. `stirred` is set when one came or the connection
    failed; `failure` says why.
    """

    def __init__(
        self,
        connection: ClientConnection,
        settings: Settings,
        on_event: Callable[[Json], None],
        stirred: asyncio.Event,
    ) -> None:
        self.failure: ClientError | None = None
        self.hello: Json = {}
        self._connection = connection
        self._settings = settings
        self._on_event = on_event
        self._stirred = stirred
        self._numbers = count(1)
        self._waiting: dict[str, asyncio.Future[Json]] = {}
        self._tasks = [asyncio.create_task(self._read())]

    async def greet(self, introduction: Json) -> None:
        """Introduce ourselves; from then on heartbeats go out."""
        self.hello = await self.request("connect", introduction)
        self._tasks.append(asyncio.create_task(self._beat()))

    async def request(self, kind: str, payload: Json) -> Json:
        """The answer's payload. Raises `Refused` for an error of the hub, `Lost` if no answer will come."""
        msg_id = str(next(self._numbers))
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[msg_id] = answer
        try:
            async with asyncio.timeout(self._settings.request_timeout):
                self.check()
                await self._connection.send(frames(message(kind, payload, msg_id)))
                return await answer
        except TimeoutError:
            # Whether it was handled is unknown, and on this connection an answer could still come: so no second try.
            self._fail(Lost(f"No answer to {kind} in {self._settings.request_timeout:g} s."))
            raise self._lost() from None
        except ConnectionClosed as error:
            self._fail(_closed(error))
            raise self._lost() from error
        finally:
            self._waiting.pop(msg_id, None)
            if answer.done() and not answer.cancelled():
                answer.exception()

    def check(self) -> None:
        """Raises what ended the connection, if something did."""
        if self.failure is not None:
            raise self.failure

    async def close(self) -> None:
        """Say goodbye if there is anyone to say it to. May be called more than once, and leaves no socket open."""
        leaving = self.failure is None
        self._fail(Lost("The connection was closed here."))
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(WebSocketException, OSError, TimeoutError):
                async with asyncio.timeout(self._settings.connect_timeout):
                    if leaving and self.hello:
                        await self._connection.send(message("disconnect", {}, str(next(self._numbers))))
                    await self._connection.close()
        finally:
            # A hub that does not say goodbye, or a caller that does not wait for it, must not keep the socket open.
            self._connection.transport.abort()
        await self._connection.wait_closed()

    async def _read(self) -> None:
        try:
            async for raw in self._connection:
                self._take(raw)
            self._fail(Lost("The hub closed the connection."))
        except ConnectionClosed as error:
            self._fail(_closed(error))
        except (ValueError, KeyError, TypeError) as error:
            self._fail(Lost(f"A message that is not of the protocol: {error!r}"))

    def _take(self, raw: str | bytes) -> None:
        kind, msg_id, payload = parse(raw)
        waiting = self._waiting.pop(msg_id, None) if isinstance(msg_id, str) else None
        if kind in ("event_broadcast", "event"):
            self._on_event(payload)
            self._stirred.set()
        elif kind == "error":
            error = error_of(payload)
            if waiting is not None and not waiting.done():
                waiting.set_exception(error)
            if payload.get("code") in CLOSING:
                self._fail(error)
            elif waiting is None:
                # An error that answers nothing we know of: what it took from us is unknown, so start afresh.
                pause = error.retry_after if isinstance(error, RateLimited) else 0
                self._fail(end_of(payload) or Lost(str(error), pause))
        elif waiting is not None and not waiting.done():
            waiting.set_result(payload)

    async def _beat(self) -> None:
        with suppress(ClientError):
            while True:
                await asyncio.sleep(self._settings.heartbeat)
                with suppress(RateLimited):
                    await self.request("heartbeat", {})

    def _fail(self, error: ClientError) -> None:
        """The first reason stays."""
        if self.failure is None:
            self.failure = error
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self.failure)
        self._stirred.set()

    def _lost(self) -> ClientError:
        return self.failure or Lost("The connection is gone.")


async def open_socket(
    url: str, introduction: Json, settings: Settings, on_event: Callable[[Json], None], stirred: asyncio.Event
) -> Socket:
    """Connect and be greeted. Raises `Lost` if another try may help, `Refused` or `Unreachable` if not."""
    try:
        # No protocol pings: our heartbeat is answered by the hub itself, not by the gateway before it.
        connection = await connect(
            url,
            open_timeout=settings.connect_timeout,
            close_timeout=settings.connect_timeout,
            ping_interval=None,
            compression=None,
            max_size=LARGEST_ANSWER,
        )
    except InvalidURI as error:
        raise Unreachable(f"{url} is not a WebSocket address: {error}") from error
    except InvalidStatus as error:
        status = error.response.status_code
        if status >= 500 or status in PASSING:
            raise Lost(f"{url} answered {status}.") from error
        raise Unreachable(f"{url} answered {status}: is it a hub's WebSocket address?") from error
    except (InvalidHandshake, OSError, TimeoutError) as error:
        raise Lost(f"Cannot reach {url}: {error}") from error
    socket = Socket(connection, settings, on_event, stirred)
    try:
        await socket.greet(introduction)
    except RateLimited as error:
        await socket.close()
        raise Lost(str(error), error.retry_after) from error
    except BaseException:
        await socket.close()
        raise
    return socket


def _closed(error: ConnectionClosed) -> Lost:
    return Lost(f"The connection broke: {error}")
