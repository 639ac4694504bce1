"""A runtime's streams over HTTP: negotiate, emit events that are committed once, and read them without silent loss."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, overload

import httpx

from millrace_client.streams.emitting import Emitting
from millrace_client.streams.markers import Markers
from millrace_client.streams.negotiation import VERSION, Negotiated, Profile, negotiated
from millrace_client.streams.polling import Batch, OnGap, Polled, Reading
from millrace_client.streams.rest import Rest, segment
from millrace_client.streams.sdk_errors import Emitted, NoAnswer, Result
from millrace_client.sync.dial import Token
from millrace_client.sync.protocol import Json, compact
from millrace_client.sync.settings import Settings


class Runtime:
    """
    A runtime of a hub, as an async context manager. `url` is the hub's HTTP address.

    `token` is a string, or a function (async or not) that is asked at first and whenever the hub refuses its token.
    `attempts` counts the first try; where nobody listens, `refusals` of them are enough. Pauses and timeouts are in
    `settings`. `now` is in seconds since 1970.
    Errors of the hub are `SdkError`; no answer is `NoAnswer`.
    """

    def __init__(
        self,
        url: str,
        runtime_id: str,
        token: Token,
        *,
        attempts: int = 6,
        refusals: int | None = None,
        settings: Settings | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        now: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self.runtime_id = runtime_id
        self.negotiated: Negotiated | None = None
        self._path = f"/v1/runtimes/{segment('runtime_id', runtime_id)}"
        self._rest = Rest(
            url, token, attempts=attempts, settings=settings or Settings(), refusals=refusals, transport=transport
        )
        self._now = now
        self._new_id = new_id
        self.markers = Markers(self._rest, f"{self._path}/markers", new_id)

    async def __aenter__(self) -> Self:
        await self._rest.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._rest.__aexit__()

    async def negotiate(
        self,
        profile: Profile | None = None,
        limits: Mapping[str, int] | None = None,
        capabilities: Sequence[str] = (),
    ) -> Negotiated:
        """
        Agree on version, limits and capabilities; without a profile it is desktop-full. `limits` overrides single ones.

        The hub remembers it for the runtime: a program that only joins one that was negotiated need not do it again.
        """
        body: Json = {"supported_contract_versions": [VERSION], "requested_capabilities": list(capabilities)}
        if profile is not None:
            body["profile"] = profile
        if limits is not None:
            body["limits"] = dict(limits)
        reply = await self._rest.request("POST", f"{self._path}/negotiate", content=compact(body).encode())
        self.negotiated = negotiated(reply.body)
        return self.negotiated

    async def status(self, *, rebuild: bool = False) -> Json:
        """The projection of the runtime's streams, with the position it was taken at. A rebuild needs an operator."""
        query = {"rebuild": "true" if rebuild else None}
        return (await self._rest.request("GET", f"{self._path}/status", params=query)).body

    def stream(self, stream_id: str) -> Stream:
        return Stream(self, stream_id, self._rest, f"{self._path}/streams/{segment('stream_id', stream_id)}/events")

    def complete(self, event: Mapping[str, Any]) -> Json:
        """The event with what it need not say itself."""
        known = {
            "runtime_id": self.runtime_id,
            "contract_version": self.negotiated.active_contract_version if self.negotiated else VERSION,
            "ts_ms": int(self._now() * 1000),
            "severity": "info",
        } | dict(event)
        return known if "event_id" in known else {"event_id": self._new_id()} | known


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of a runtime; `Runtime.stream` makes it."""

    runtime: Runtime
    stream_id: str
    _rest: Rest
    _path: str

    def draft(self, event: Mapping[str, Any]) -> Json:
        """
        The event as it will be sent: with id, runtime, stream, version, time, and severity info where it has none.

        Keep a draft to emit it again whenever that is needed: the same id with another time would be a conflict.
        """
        return self.runtime.complete({"stream_id": self.stream_id} | dict(event))

    @overload
    async def emit(self, event: Mapping[str, Any]) -> Emitted: ...
    @overload
    async def emit(self, event: Sequence[Mapping[str, Any]]) -> list[Result]: ...
    async def emit(self, event: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Emitted | list[Result]:
        """
        Emit an event, or a list in as many requests as it takes. What is missing is filled in as `draft` does.

        One event: its place, or the error is raised. A list: one result per event, in order, `Emitted` or `Rejected`.
        What may succeed later is sent again, under the same ids; an event that was sent again may come after those
        that followed it in the list. Raises `Usage`, before anything is sent, for what is not JSON or fits into no
        request; `SdkError` or `NoAnswer` if a request failed as a whole. Their `progress` has the results so far and
        the events without one, which can be emitted again and are not committed twice.
        """
        emitting = Emitting(self._rest, self._path)
        if isinstance(event, Mapping):
            return await emitting.one(self.draft(event))
        return await emitting.many([self.draft(each) for each in event])

    async def poll(self, cursor: str | None = None, max: int | None = None) -> Batch:  # noqa: A002
        """
        The next events after the cursor; without one, from the oldest event kept, as a new subscription.

        Errors are raised as they come: see `events` for a reader that deals with them. Without `max` the hub's limit
        counts. `SDK_VALIDATION_BATCH_TOO_LARGE` is about a single event; negotiate a larger limit to read it.
        """
        reply = await self._rest.request("GET", self._path, params={"cursor": cursor, "max": max})
        return _batch(reply.body)

    def events(
        self,
        cursor: str | None = None,
        *,
        on_gap: OnGap = "raise",
        follow: bool = True,
        wait: float = 1.0,
        max: int | None = None,  # noqa: A002
    ) -> AsyncGenerator[Polled, None]:
        """
        Every event after the cursor, in order, each with the cursor to resume at; see `Polled` for what that repeats.

        At the end of the stream it asks again every `wait` seconds, or stops if not told to `follow`. `max` is the
        most events of one batch.

        If events after the cursor are no longer kept, `on_gap="raise"` raises `StreamGapped` with the cursor and the
        last position, and resets nothing. `"yield"` starts again at the oldest event kept: first comes the hub's
        `StreamGap` (`Polled.gap`), then the events after it that this reader has not given yet. A reader that starts
        without cursor is told in the same way, whatever `on_gap` is, that the stream no longer begins at 1.

        Nothing is left out in silence: if the hub skips a position without saying so, that is a `NoAnswer`. Every
        error ends the iterator; the cursor of the last `Polled` reads on.
        """
        return Reading(self.poll, self._rest.settings.sleep, cursor, on_gap, follow, wait, max).events()


def _batch(body: Json) -> Batch:
    events, cursor, dropped = body.get("events"), body.get("next_cursor"), body.get("dropped_count")
    if (
        isinstance(events, list)
        and all(_is_event(event) for event in events)
        and isinstance(cursor, str)
        and isinstance(dropped, int)
    ):
        return Batch(tuple(events), cursor, dropped)
    raise NoAnswer("An answer to a poll that is not of the contract.")


def _is_event(event: object) -> bool:
    """Enough of one to read on; whatever else it holds is the reader's."""
    return isinstance(event, dict) and isinstance(event.get("seq_no"), int) and isinstance(event.get("event_type"), str)
