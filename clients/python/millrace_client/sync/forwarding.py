"""Forwards events to a developer's own HTTP server, as a hub's webhook would: same body, same signature, retries."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import httpx

from millrace.delivery.domain import signing
from millrace.delivery.domain.sources import outside
from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.names import join_key
from millrace.ledger.domain.page import Event, Origin, Record
from millrace_client.sync.protocol import Json
from millrace_client.sync.settings import Backoff, Settings

JSON = {"Content-Type": "application/json", "User-Agent": "millrace-listen"}
SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Forwardable:
    """An event as a webhook gets it: its id and type outside the hub, and the body."""

    event_id: str
    event_type: str
    body: bytes
    position: int


@dataclass(frozen=True, slots=True)
class Forwarded:
    """One try. `status` is None if nobody answered, and then `error` says why."""

    event: Forwardable
    attempt: int
    status: int | None
    ms: int
    error: str = ""
    retry_in: float | None = None
    """Seconds until the next try; None if there is none."""

    @property
    def accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def of_project(project: str, event: Json) -> Forwardable:
    """An event as `follow` gives it."""
    body = {name: event[name] for name in ("event", "meta") if event.get(name) is not None}
    at = event.get("status_updated_at")
    return _forwardable(("sync", project), str(event["id"]), body, int(event["committed_id"]), at)


def of_session(session_id: str, event: Json) -> Forwardable:
    body = {name: value for name, value in event.items() if name != "sequence"}
    return _forwardable(("realtime", session_id), str(event["eventId"]), body, int(event["sequence"]), None)


def of_stream(runtime_id: str, stream_id: str, event: Json) -> Forwardable:
    body = {name: value for name, value in event.items() if name != "seq_no"}
    names = ("streams", runtime_id, stream_id)
    return _forwardable(names, str(event["event_id"]), body, int(event["seq_no"]), event.get("ts_ms"))


def _forwardable(names: Sequence[str], event_id: str, body: Json, position: int, at: object) -> Forwardable:
    """The hub's own rule makes the body; its tenant is in none of it."""
    ledger = join_key(names[0], "default", *names[1:])
    record = Record(event_id, b"", canonical(body))
    time_ms = at if isinstance(at, int) else int(time.time() * 1000)
    outer_id, kind, sent = outside(ledger, Event(position, record, time_ms, Origin("")))
    return Forwardable(outer_id, kind, sent, position)


@dataclass(frozen=True, slots=True)
class Forwarding:
    """
    Posts one event after the other; each until it is accepted with 2xx, or `attempts` times (0: without an end).

    `told` hears of every try, before the pause that follows it.
    """

    url: str
    secret: str = field(repr=False)
    told: Callable[[Forwarded], None]
    attempts: int = 0
    settings: Settings = field(default_factory=Settings)
    transport: httpx.AsyncBaseTransport | None = None
    now: Callable[[], float] = time.time

    async def __call__(self, event: Forwardable) -> bool:
        """Whether it was accepted."""
        backoff = Backoff(self.settings)
        attempt = 0
        async with httpx.AsyncClient(timeout=SECONDS, transport=self.transport) as http:
            while True:
                attempt += 1
                last = attempt == self.attempts
                tried = await self._try(http, event, attempt)
                pause = None if last or tried.accepted else max(0.1, backoff.next())
                self.told(Forwarded(event, attempt, tried.status, tried.ms, tried.error, pause))
                if pause is None:
                    return tried.accepted
                await self.settings.sleep(pause)

    async def _try(self, http: httpx.AsyncClient, event: Forwardable, attempt: int) -> Forwarded:
        message_id = signing.message_id([event.event_id])
        headers = signing.headers(message_id, int(self.now()), event.body, [self.secret])
        start = self.settings.clock()
        try:
            answer = await http.post(self.url, content=event.body, headers={**headers, **JSON})
            status, error = answer.status_code, ""
        except (httpx.RequestError, httpx.InvalidURL) as problem:
            status, error = None, str(problem) or type(problem).__name__
        return Forwarded(event, attempt, status, round((self.settings.clock() - start) * 1000), error)
