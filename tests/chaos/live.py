"""Clients on the WebSocket: those that submit and those that follow, in one event loop of their own."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from millrace_client.sync.live import Live
from millrace_client.sync.settings import Settings
from tests.chaos.doors import submitted, sync_item
from tests.chaos.history import Answer, History, Sight, tenants_in
from tests.chaos.tenants import PROJECT, Tenant

SOCKET = "socket"
QUICK = Settings(first_pause=0.05, longest_pause=1, request_timeout=20)


@dataclass
class Follower:
    """Follows a tenant's project, and keeps what it sees in the order it came."""

    tenant: Tenant
    seen: list[Sight] = field(default_factory=list)

    async def __call__(self) -> None:
        async with Live(self.tenant.hub.ws_url, PROJECT, self.tenant.token(), store=":memory:", settings=QUICK) as live:
            async for event in live.follow(limit=200):
                at = time.monotonic()
                self.seen.append(Sight(event["committed_id"], event["id"], tenants_in(event), at))


@dataclass
class SocketWriter:
    """Submits batches into a tenant's project, and often asks again for those of another client."""

    history: History
    tenant: Tenant
    batch: int
    pause: float
    rng: random.Random
    shared: list[list[str]]

    async def __call__(self, over: threading.Event, gives_up: threading.Event) -> None:
        number = 0
        async with Live(self.tenant.hub.ws_url, PROJECT, self.tenant.token(), store=":memory:", settings=QUICK) as live:
            while not over.is_set():
                ids = [f"socket-{number + n}" for n in range(self.rng.randint(1, 2 * self.batch - 1))]
                number += len(ids)
                again = self.rng.random() < 0.25 and self.shared
                if not await self._send(live, ids, gives_up):
                    self.history.count("events in doubt", len(ids))
                    return
                self.shared.append(ids)
                if again:
                    await self._send(live, self.rng.choice(self.shared), gives_up)
                await asyncio.sleep(self.rng.uniform(0, 2 * self.pause))

    async def _send(self, live: Live, ids: list[str], gives_up: threading.Event) -> bool:
        waiting = asyncio.create_task(live.submit_many([sync_item(id_, self.tenant.name) for id_ in ids]))
        while not waiting.done() and not gives_up.is_set():
            await asyncio.wait([waiting], timeout=0.1)
        if not waiting.done():
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            return False
        ledger = self.tenant.ledger("sync", PROJECT)
        told = {result["id"]: submitted(result) for result in await waiting}
        self.history.answered(SOCKET, [Answer(ledger, *one) for one in told.values() if one is not None])
        self.history.refused.extend(f"socket: {id_}" for id_, one in told.items() if one is None)
        return True


class Loop:
    """An event loop in a thread. What still runs when the block ends is cancelled."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def start(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @contextmanager
    def running(self) -> Iterator[Loop]:
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*others, return_exceptions=True)
