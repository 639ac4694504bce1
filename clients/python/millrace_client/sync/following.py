"""Following a subscription: catch up page by page, then live, over as many connections as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal

from millrace_client.errors import Refused
from millrace_client.sync.cursor_errors import CursorAhead, HistoryPruned
from millrace_client.sync.dial import ClientClosed, Dialer
from millrace_client.sync.order import Order, OrderedEvents
from millrace_client.sync.protocol import Json, Lost, RateLimited
from millrace_client.sync.settings import Status
from millrace_client.sync.store import Cursor
from millrace_client.sync.wire import Socket


@dataclass(slots=True)
class Following:
    """One subscription's reader. No partitions: the whole project."""

    dialer: Dialer
    cursor: Cursor
    partitions: Sequence[str] | None = None
    limit: int | None = None
    on_future_cursor: Literal["raise", "resync"] = "raise"
    on_pruned: Literal["raise", "continue"] = "raise"
    _order: Order = field(init=False)
    _live: bool = field(init=False, default=False)

    async def events(self, most: int | None = None) -> AsyncGenerator[Json, None]:
        """Each event; the cursor moves past it when the next one is asked for."""
        given = 0
        async with aclosing(self._batches()) as batches:
            async for batch in batches:
                for event in batch.events:
                    yield event
                    last = event is batch.events[-1]
                    self.cursor.apply([event], batch.cursor if last else int(event["committed_id"]))
                    given += 1
                    if given == most:
                        return
                if not batch.events:
                    self.cursor.apply([], batch.cursor)

    async def batches(self) -> AsyncGenerator[list[Json], None]:
        """As many events at once as are there; the cursor moves past all of them when the next ones are asked for."""
        async with aclosing(self._batches()) as batches:
            async for batch in batches:
                if batch.events:
                    yield batch.events
                self.cursor.apply(batch.events, batch.cursor)

    async def _batches(self) -> AsyncGenerator[OrderedEvents, None]:
        while True:
            # What was heard on the last connection is forgotten: a new one starts from the durable cursor.
            order = Order(
                self.cursor.position,
                gapless=not self.partitions,
                room=self.dialer.settings.buffered_events,
            )
            self._order, self._live = order, False
            stirred = asyncio.Event()
            try:
                socket = await self.dialer.dial(order.heard, stirred)
            except ClientClosed:
                return
            try:
                while True:
                    yield await self._next(socket, stirred)
            except Lost as error:
                self.dialer.lost(error)
            except Refused as error:
                self.dialer.refused(error)
            finally:
                await socket.close()

    async def _next(self, socket: Socket, stirred: asyncio.Event) -> OrderedEvents:
        while True:
            if self._order.syncing:
                batch = await self._page(socket)
            else:
                batch = self._order.ready()
            if batch is not None:
                return batch
            if self._order.syncing:
                continue
            self._say_live()
            await stirred.wait()
            stirred.clear()
            socket.check()

    async def _page(self, socket: Socket) -> OrderedEvents | None:
        page = await self._sync(socket)
        try:
            if self._order.is_ahead(page):
                self._start_over(int(page["sync_to_committed_id"]))
                return None
            self._look_for_pruning(page)
            return self._order.page(page)
        except (KeyError, TypeError, ValueError) as error:
            raise Lost(f"A sync_response that is not of the protocol: {error!r}") from error

    async def _sync(self, socket: Socket) -> Json:
        while True:
            since = self._order.request()
            payload: Json = {"since_committed_id": since}
            if self.partitions:
                payload |= {"partitions": list(self.partitions), "subscription_partitions": list(self.partitions)}
            if self.limit is not None:
                payload["limit"] = self.limit
            try:
                return await socket.request("sync", payload)
            except RateLimited as error:
                await self.dialer.slow_down(error)
                socket.check()

    def _start_over(self, newest: int) -> None:
        if self.on_future_cursor == "raise":
            raise CursorAhead(self._order.last, newest)
        self.dialer.notify(Status("resync", f"The hub's newest position is {newest}; reading all of it again."))
        self.cursor.apply([], 0)
        self._order.restart(0)

    def _look_for_pruning(self, page: Json) -> None:
        through = page.get("pruned_through_committed_id")
        if through is None or int(through) <= self._order.last:
            return
        if self.on_pruned == "raise":
            raise HistoryPruned(self._order.last, int(through))
        self.dialer.notify(Status("pruned", f"Events up to {through} are no longer kept."))

    def _say_live(self) -> None:
        if not self._live:
            self._live = True
            self.dialer.notify(Status("live", f"at {self._order.last}"))
