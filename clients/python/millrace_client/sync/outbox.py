"""The outbox: an item is on the disk from before it is sent until its result has come, so that none is forgotten."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from millrace_client.errors import Refused, Usage
from millrace_client.sync.dial import ClientClosed, Dialer
from millrace_client.sync.protocol import ENVELOPE_BYTES, MOST_BYTES, MOST_ITEMS, Json, Lost, RateLimited, compact
from millrace_client.sync.store import Pending
from millrace_client.sync.wire import Socket

POISON = {"bad_request", "validation_failed", "too_large"}
"""A whole message was refused for what is in it; its items are tried alone to find which."""
ROOM = MOST_BYTES - ENVELOPE_BYTES

log = logging.getLogger(__name__)


class Outbox:
    """Sends what is pending, oldest first, one message at a time: items are committed in the order they were given."""

    def __init__(self, pending: Pending, dialer: Dialer) -> None:
        self._pending = pending
        self._dialer = dialer
        self._stirred = asyncio.Event()
        self._answers: dict[str, asyncio.Future[Json]] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to send, if there is something to send and it is not being done already."""
        self._stirred.set()
        if self._pending.batch(1, ROOM) and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())
            self._task.add_done_callback(self._ended)

    async def submit(self, items: Sequence[Mapping[str, Any]]) -> list[Json]:
        drafts = [_checked(item) for item in items]
        self._pending.add(drafts)
        answers = [self._answer(draft["id"]) for draft in drafts]
        self.start()
        return [await asyncio.shield(answer) for answer in answers]

    async def flush(self) -> list[Json]:
        """Wait until all that is pending now has its result."""
        answers = [self._answer(event_id) for event_id in self._pending.ids()]
        self.start()
        return [await asyncio.shield(answer) for answer in answers]

    async def stop(self) -> None:
        """What is pending stays in the store."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._fail(Lost("The client was closed; what has no result yet stays in the store."))

    async def _run(self) -> None:
        while True:
            await self._something_to_send()
            try:
                socket = await self._dialer.dial(lambda _: None, self._stirred)
            except ClientClosed:
                return
            try:
                while True:
                    await self._send(socket, self._batch(socket))
                    await self._something_to_send(socket)
            except Lost as error:
                self._dialer.lost(error)
            except Refused as error:
                self._dialer.refused(error)
            finally:
                await socket.close()

    async def _something_to_send(self, socket: Socket | None = None) -> None:
        """Raises what ended the connection, if that comes first."""
        while not self._pending.batch(1, ROOM):
            await self._stirred.wait()
            self._stirred.clear()
            if socket is not None:
                socket.check()

    def _batch(self, socket: Socket) -> list[Json]:
        limits = socket.hello.get("limits")
        most = limits.get("max_batch_size") if isinstance(limits, dict) else None
        return self._pending.batch(min(most, MOST_ITEMS) if isinstance(most, int) and most > 0 else MOST_ITEMS, ROOM)

    async def _send(self, socket: Socket, batch: list[Json]) -> bool:
        """False when the hub asked to slow down and the batch is still to be sent."""
        try:
            answer = await socket.request("submit_events", {"events": batch})
        except RateLimited as error:
            await self._dialer.slow_down(error)
        except Refused as error:
            if error.code not in POISON:
                raise
            if not _about_items(error):
                raise Lost(f"The hub did not take the message: {error}") from error
            return await self._find_poison(socket, batch, error)
        else:
            self._settle(batch, answer)
            return True
        return False

    async def _find_poison(self, socket: Socket, batch: list[Json], error: Refused) -> bool:
        if len(batch) == 1:
            event_id = batch[0]["id"]
            log.warning("%s was refused and will not be sent again: %s", event_id, error)
            self._pending.remove([event_id])
            if answer := self._answers.pop(event_id, None):
                _refuse(answer, error)
            return True
        middle = len(batch) // 2
        return await self._send(socket, batch[:middle]) and await self._send(socket, batch[middle:])

    def _settle(self, batch: list[Json], answer: Json) -> None:
        results = {result["id"]: result for result in _results(answer)}
        answered = [item["id"] for item in batch if item["id"] in results]
        self._pending.remove(answered)
        for event_id in answered:
            waiting = self._answers.pop(event_id, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(results[event_id])
            elif results[event_id]["status"] == "rejected":
                log.warning("%s was rejected: %s", event_id, results[event_id].get("reason"))
        if len(answered) < len(batch):
            raise Lost("The hub did not answer for every item.")

    def _answer(self, event_id: str) -> asyncio.Future[Json]:
        return self._answers.setdefault(event_id, asyncio.get_running_loop().create_future())

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.warning("Sending has stopped; what has no result yet stays in the store: %s", error)
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        answers, self._answers = self._answers, {}
        for answer in answers.values():
            _refuse(answer, error)


def _refuse(answer: asyncio.Future[Json], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()


def _results(answer: Json) -> list[Json]:
    results = answer.get("results")
    if not isinstance(results, list):
        return []
    return [
        result
        for result in results
        if isinstance(result, dict) and "id" in result and result.get("status") in {"committed", "rejected"}
    ]


def _checked(item: Mapping[str, Any]) -> Json:
    """With an id, and as JSON will carry it. Raises `Usage` for what could never be sent."""
    draft = {"id": str(uuid.uuid4())} | dict(item)
    if not isinstance(draft["id"], str) or not draft["id"]:
        raise Usage("An item's id is a non-empty string.")
    try:
        size = len(compact(draft).encode())
    except (TypeError, ValueError) as error:
        raise Usage(f"{draft['id']} is not JSON: {error}") from error
    if size > ROOM:
        raise Usage(f"{draft['id']} has {size} bytes; a message takes {ROOM}.")
    return draft


def _about_items(error: Refused) -> bool:
    """Whether the items are to blame, or something about the connection that another one would not have."""
    field = str(error.details.get("field", "body"))
    return field in ("body", "payload") or field.startswith("events")
