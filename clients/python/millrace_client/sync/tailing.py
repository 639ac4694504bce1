"""One tail of a session or stream: events in order, each once, gaps told, and again from the last one when lost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from typing import Literal

from millrace_client.errors import ClientError, Refused
from millrace_client.sync.dial import ClientClosed, Dialer
from millrace_client.sync.protocol import Json, Lost, RateLimited, SubscriptionEnded
from millrace_client.sync.settings import Status
from millrace_client.sync.wire import Socket

OnTailGap = Literal["raise", "yield"]
MOST_WAITING = 10_000
"""Events that were heard and not asked for yet; beyond it the connection is given up, and resumed later."""


@dataclass(frozen=True, slots=True)
class TailedEvent:
    """An event with its position. `gap`: no event, but the word that all up to `position` are no longer kept."""

    event: Json
    position: int
    phase: str
    gap: bool = False


class TailGapped(ClientError):
    """Events after the last one given are no longer kept. Nothing was skipped yet."""

    def __init__(self, position: int, pruned_through: int) -> None:
        super().__init__(
            f"Events {position + 1} to {pruned_through} are no longer kept. To go on after them, start after "
            f"{pruned_through} (in code also: on_gap='yield')."
        )
        self.position = position
        self.pruned_through = pruned_through


@dataclass(frozen=True, slots=True)
class SessionPlace:
    session_id: str
    number = "sequence"

    def request(self, after: int | None) -> Json:
        return {"kind": "session", "session_id": self.session_id, "after_sequence": after or 0}


@dataclass(frozen=True, slots=True)
class StreamPlace:
    runtime_id: str
    stream_id: str
    number = "seq_no"

    def request(self, after: int | None) -> Json:
        start = "tail" if after is None else "snapshot"
        return {"kind": "stream", "runtime_id": self.runtime_id, "stream_id": self.stream_id, "start": start}


@dataclass(slots=True)
class Tailing:
    """`after`: the last position that was given; None while nothing was and only new events are wanted."""

    dialer: Dialer
    place: SessionPlace | StreamPlace
    after: int | None
    on_gap: OnTailGap = "raise"
    _live: bool = field(init=False, default=False)

    async def events(self) -> AsyncGenerator[TailedEvent, None]:
        while True:
            heard: deque[Json] = deque()
            stirred = asyncio.Event()
            try:
                socket = await self.dialer.dial(heard.append, stirred)
            except ClientClosed:
                return
            try:
                async for one in self._connected(socket, heard, stirred):
                    yield one
            except SubscriptionEnded as error:
                for one in self._gap(error.pruned_through, "live"):
                    yield one
                self.dialer.lost(error)
            except Lost as error:
                self.dialer.lost(error)
            except Refused as error:
                self.dialer.refused(error)
            finally:
                await socket.close()

    async def _connected(
        self, socket: Socket, heard: deque[Json], stirred: asyncio.Event
    ) -> AsyncGenerator[TailedEvent, None]:
        watermark = (await self._subscribed(socket)).get("snapshot_high_watermark_seq_no")
        if self.after is None and isinstance(watermark, int):
            self.after = watermark
        self._live = False
        caught_up = watermark if isinstance(watermark, int) else 0
        while True:
            while heard:
                if len(heard) > MOST_WAITING:
                    raise Lost(f"More than {MOST_WAITING} events are waiting to be read.")
                for one in self._taken(heard.popleft()):
                    yield one
            socket.check()
            if (self.after or 0) >= caught_up:
                self._say_live()
            await stirred.wait()
            stirred.clear()

    async def _subscribed(self, socket: Socket) -> Json:
        while True:
            try:
                return await socket.request("subscribe", self.place.request(self.after))
            except RateLimited as error:
                await self.dialer.slow_down(error)
                socket.check()

    def _taken(self, message: Json) -> Iterator[TailedEvent]:
        """Nothing for what was given before; a gap before what does not follow on. Raises `TailGapped`, `Lost`."""
        try:
            event, phase = message["event"], str(message["phase"])
            position = int(event[self.place.number])
        except (KeyError, TypeError, ValueError) as error:
            raise Lost(f"An event that is not of the protocol: {error!r}") from error
        if event.get("event_type") == "StreamGap" and str(event.get("event_id", "")).startswith("gap-"):
            yield from self._gap(position, phase, event)
            return
        if position <= (self.after or 0):
            return
        yield from self._gap(position - 1, phase)
        self.after = position
        yield TailedEvent(event, position, phase)

    def _gap(self, through: int, phase: str, event: Json | None = None) -> Iterator[TailedEvent]:
        last = self.after or 0
        if through <= last:
            return
        if self.on_gap == "raise":
            raise TailGapped(last, through)
        self.after = through
        yield TailedEvent(event or {"first": last + 1, "last": through}, through, phase, gap=True)

    def _say_live(self) -> None:
        if not self._live:
            self._live = True
            self.dialer.notify(Status("live", f"at {self.after or 0}"))
