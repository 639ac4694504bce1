"""Live tails over the WebSocket: a session or a stream from a position on, over as many connections as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Self

from millrace_client.errors import Usage
from millrace_client.sync.dial import Dialer, Token
from millrace_client.sync.settings import Settings, Status
from millrace_client.sync.tailing import OnTailGap, SessionPlace, StreamPlace, TailedEvent, Tailing


class Subscriber:
    """
    Follows sessions and streams of a hub, as an async context manager. `url` is the hub's WebSocket address.

    `token` is a string, or a function (async or not) that is asked before every connection. `project` is needed only
    if the token names several. Each tail has a connection of its own.
    """

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        project: str | None = None,
        client_id: str | None = None,
        settings: Settings | None = None,
        on_status: Callable[[Status], None] | None = None,
    ) -> None:
        self._url = url
        self._token = token
        self._project = project
        self._client_id = client_id
        self._settings = settings or Settings()
        self._on_status = on_status or (lambda _: None)
        self._closing: asyncio.Event | None = None
        self._dialers: list[Dialer] = []

    async def __aenter__(self) -> Self:
        self._closing = asyncio.Event()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._closing is not None:
            self._closing.set()
        await asyncio.gather(*(dialer.hang_up() for dialer in self._dialers))

    def session(
        self, session_id: str, after: int = 0, *, on_gap: OnTailGap = "raise"
    ) -> AsyncGenerator[TailedEvent, None]:
        """
        Every event of a realtime session after a sequence: what is stored, then what is published.

        If events after that place are no longer kept, `on_gap="raise"` raises `TailGapped`; `"yield"` gives an entry
        with `gap` in their place and goes on after it. Nothing is left out in silence, and nothing comes twice.
        """
        return self._tail(SessionPlace(session_id), after, on_gap)

    def stream(
        self,
        runtime_id: str,
        stream_id: str,
        after: int | None = 0,
        *,
        on_gap: OnTailGap = "raise",
    ) -> AsyncGenerator[TailedEvent, None]:
        """
        Every event of a stream after a `seq_no`; None: only what is emitted from now on. Gaps as in `session`.

        The hub knows no tail from a number, so a connection that was lost reads the stream's retained events again;
        those that were given are left out here.
        """
        return self._tail(StreamPlace(runtime_id, stream_id), after, on_gap)

    def _tail(
        self, place: SessionPlace | StreamPlace, after: int | None, on_gap: OnTailGap
    ) -> AsyncGenerator[TailedEvent, None]:
        if self._closing is None:
            raise Usage("Use the subscriber inside `async with`.")
        dialer = Dialer(
            self._url, self._project, self._token, self._client_id, self._settings, self._on_status, self._closing
        )
        self._dialers.append(dialer)
        return Tailing(dialer, place, after, on_gap).events()
