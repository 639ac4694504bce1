"""Reads a stream batch by batch, in order. It reports every gap, and gives nothing twice after a reset."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from millrace_client.streams.sdk_errors import CursorExpired, NoAnswer, StreamDegraded, StreamGapped
from millrace_client.sync.protocol import Json

OnGap = Literal["raise", "yield"]


@dataclass(frozen=True, slots=True)
class Batch:
    """`next_cursor` reads on after `events`; `dropped_count` is how many events before them are no longer kept."""

    events: tuple[Json, ...]
    next_cursor: str
    dropped_count: int


@dataclass(frozen=True, slots=True)
class Polled:
    """
    An event, and the cursor to store once it is dealt with.

    The hub gives a cursor per batch, not per event. The last event of a batch has the one after it, which repeats
    nothing. Every earlier one has the cursor the batch was read with: to resume there repeats the batch from its
    beginning, and never leaves anything out. None (in a batch read without cursor) resumes at the oldest event kept.

    `gap`: the event is the hub's word that those before the next one are no longer kept.
    """

    event: Json
    cursor: str | None
    gap: bool = False


@dataclass(slots=True)
class Reading:
    """One pass over a stream."""

    poll: Callable[[str | None, int | None], Awaitable[Batch]]
    sleep: Callable[[float], Awaitable[object]]
    cursor: str | None
    on_gap: OnGap
    follow: bool
    wait: float
    most: int | None
    _reached: int | None = field(init=False)
    """The newest position given or told lost; None while only the cursor knows."""

    def __post_init__(self) -> None:
        self._reached = 0 if self.cursor is None else None

    async def events(self) -> AsyncGenerator[Polled, None]:
        while True:
            asked, batch = await self._batch()
            last = len(batch.events) - 1
            for place, event in enumerate(batch.events):
                gap = place == 0 and asked is None and batch.dropped_count > 0 and event["event_type"] == "StreamGap"
                if self._is_new(event, gap):
                    yield Polled(event, batch.next_cursor if place == last else asked, gap)
            self.cursor = batch.next_cursor
            if batch.events:
                continue
            if not self.follow:
                return
            await self.sleep(self.wait)

    async def _batch(self) -> tuple[str | None, Batch]:
        """A batch, and the cursor it was read with."""
        try:
            return self.cursor, await self.poll(self.cursor, self.most)
        except (CursorExpired, StreamDegraded) as error:
            if self.on_gap != "yield":
                raise StreamGapped(error, self.cursor, self._reached or None) from error
        return None, await self.poll(None, self.most)

    def _is_new(self, event: Json, gap: bool) -> bool:
        position = event["seq_no"]
        if gap:
            self._reached = max(self._reached or 0, position)
        elif self._reached is not None and position <= self._reached:
            return False
        elif self._reached is not None and position > self._reached + 1:
            raise NoAnswer(f"After {self._reached} the hub gave {position}, without a word about those between.")
        else:
            self._reached = position
        return True
