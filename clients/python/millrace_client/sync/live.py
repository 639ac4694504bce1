"""The live client: submit events that are never forgotten, and follow a ledger over WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from millrace_client.errors import Usage
from millrace_client.sync.dial import Dialer, Token, ask_for, client_of
from millrace_client.sync.following import Following
from millrace_client.sync.outbox import Outbox
from millrace_client.sync.protocol import Json
from millrace_client.sync.settings import Settings, Status
from millrace_client.sync.store import Store, default_file

FutureCursor = Literal["raise", "resync"]
Pruned = Literal["raise", "continue"]


class Live:
    """
    A project of a hub, as an async context manager.

    Submitting and each `follow` have a socket of their own: the hub does not broadcast an event to the connection
    that submitted it, so a shared one would have to follow its own events by other means.

    `token` is a string, or a function (async or not) that is asked before every connection; only with a function does
    a refused token get a second chance. `store` is a path, `:memory:`, or a `Store`, which then stays open. Left out,
    it is a file of this client for this project, in the folder `stores` of the home folder.
    """

    def __init__(
        self,
        url: str,
        project: str,
        token: Token,
        *,
        client_id: str | None = None,
        store: Store | str | Path | None = None,
        settings: Settings | None = None,
        on_status: Callable[[Status], None] | None = None,
    ) -> None:
        self._url = url
        self._project = project
        self._token = token
        self._client_id = client_id
        self._settings = settings or Settings()
        self._on_status = on_status or (lambda _: None)
        self._given = store
        self._store: Store | None = None
        self._closing = asyncio.Event()
        self._dialers: list[Dialer] = []
        self._outbox: Outbox | None = None

    async def __aenter__(self) -> Self:
        """What an earlier run left without a result is sent now."""
        self._store = self._given if isinstance(self._given, Store) else Store(self._given or await self._own_file())
        self._outbox = Outbox(self._store.outbox(self._url, self._project), self._dialer())
        self._outbox.start()
        return self

    async def _own_file(self) -> Path:
        client = self._client_id or client_of(await ask_for(self._token))
        return default_file(self._url, self._project, client)

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        try:
            if self._outbox is not None:
                await self._outbox.stop()
        finally:
            await self._leave()

    async def _leave(self) -> None:
        try:
            await asyncio.gather(*(dialer.hang_up() for dialer in self._dialers))
        finally:
            if self._store is not None and self._store is not self._given:
                self._store.close()
            self._outbox = self._store = None

    async def submit(self, item: Mapping[str, Any]) -> Json:
        """The item's result, committed or rejected. See `submit_many`."""
        [result] = await self.submit_many([item])
        return result

    async def submit_many(self, items: Sequence[Mapping[str, Any]]) -> list[Json]:
        """
        One result per item, in order, however many connections it takes.

        Items without an id get one. They are durable before this waits for anything: if the wait is cancelled or the
        process dies, they are sent under the same ids, now or by the next client that opens the store. Raises `Refused`
        if the hub refuses the request itself; unless that was for an item's own form, it stays in the store.
        """
        return await self._opened().submit(items)

    async def flush(self) -> list[Json]:
        """Wait for the results of everything that is pending."""
        return await self._opened().flush()

    def follow(
        self,
        partitions: Sequence[str] | None = None,
        *,
        since: int = 0,
        subscription: str | None = None,
        limit: int | None = None,
        most: int | None = None,
        on_future_cursor: FutureCursor = "raise",
        on_pruned: Pruned = "raise",
    ) -> AsyncGenerator[Json, None]:
        """
        Every event of these partitions, or of the whole project, once and by `committed_id`.

        It ends with the client, or after `most` events; `limit` is the size of a page.

        It starts after the store's cursor for this subscription (a name of your own, else the partitions), or after
        `since` if there is none. Asking for the next event says that the last one is dealt with: only then does the
        cursor move. So a consumer that dies, or leaves the loop, gets the event it was at again: at least once. Give
        the `Store` an `on_apply` to write what an event means in the cursor's own transaction: exactly once.

        Raises `CursorAhead` if the hub does not have the cursor's position (`resync` reads all again), `HistoryPruned`
        if events after the cursor are no longer kept (`continue` goes on with those that are, and reports a status).
        """
        return self._following(partitions, since, subscription, limit, on_future_cursor, on_pruned).events(most)

    def follow_batches(
        self,
        partitions: Sequence[str] | None = None,
        *,
        since: int = 0,
        subscription: str | None = None,
        limit: int | None = None,
        on_future_cursor: FutureCursor = "raise",
        on_pruned: Pruned = "raise",
    ) -> AsyncGenerator[list[Json], None]:
        """Like `follow`, a page or whatever is there at a time: one write to the disk for all of them."""
        return self._following(partitions, since, subscription, limit, on_future_cursor, on_pruned).batches()

    def _following(
        self,
        partitions: Sequence[str] | None,
        since: int,
        subscription: str | None,
        limit: int | None,
        on_future_cursor: FutureCursor,
        on_pruned: Pruned,
    ) -> Following:
        self._opened()
        assert self._store is not None  # noqa: S101
        wanted = sorted(set(partitions)) if partitions else None
        cursor = self._store.cursor(self._url, self._project, subscription or json.dumps(wanted), since)
        return Following(self._dialer(), cursor, wanted, limit, on_future_cursor, on_pruned)

    def _opened(self) -> Outbox:
        if self._outbox is None:
            raise Usage("Use the client inside `async with`.")
        return self._outbox

    def _dialer(self) -> Dialer:
        dialer = Dialer(
            self._url, self._project, self._token, self._client_id, self._settings, self._on_status, self._closing
        )
        self._dialers.append(dialer)
        return dialer
