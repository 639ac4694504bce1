"""A small model of the streams and markers doors, behind an httpx transport: floors, subscriptions, revisions."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Coroutine, Iterator
from itertools import count
from typing import Any
from urllib.parse import unquote

import httpx

from millrace_client.streams.runtime import Runtime
from millrace_client.sync.settings import Settings

URL = "http://hub.test"
WAITS = 20
STATUS = {
    "SDK_VALIDATION_INVALID_ARGUMENT": 400,
    "SDK_VALIDATION_BATCH_TOO_LARGE": 413,
    "SDK_RUNTIME_INVALID_CURSOR": 400,
    "SDK_RUNTIME_NOT_FOUND": 404,
    "SDK_RUNTIME_INVALID_STATE": 409,
    "SDK_RUNTIME_CONFLICT": 409,
    "SDK_RUNTIME_STREAM_DEGRADED": 409,
    "SDK_RUNTIME_CURSOR_EXPIRED": 410,
    "SDK_SECURITY_AUTH_REQUIRED": 401,
    "SDK_SECURITY_RATE_LIMITED": 429,
    "SDK_INTERNAL_UNAVAILABLE": 503,
}
RETRYABLE = {"SDK_SECURITY_RATE_LIMITED", "SDK_INTERNAL_UNAVAILABLE"}

Json = dict[str, Any]

EVENT: Json = {"event_type": "DeliveryTrace", "source_component": "router", "payload": {"hop": 1}}
DOWN = httpx.ConnectError("nobody listens")


class No(Exception):
    """An answer of the hub that is an error."""

    def __init__(self, code: str, **details: Any) -> None:
        self.code = code
        self.body = {
            "machine_code": code,
            "category": code.split("_")[1].capitalize(),
            "retryable": code in RETRYABLE,
            "is_user_actionable": code not in RETRYABLE,
            "message": "because",
            "details": details,
        }

    def response(self, **headers: str) -> httpx.Response:
        return httpx.Response(STATUS[self.code], json=self.body, headers=headers)


class Lost(Exception):
    """The hub does what it is asked, and the answer does not arrive."""


class FakeStreams:
    """`trouble` is used up, one per request, before the hub answers as it should; None is no trouble."""

    def __init__(self, per_batch: int = 3, per_page: int = 2) -> None:
        self.per_batch = per_batch
        self.per_page = per_page
        self.log: list[Json] = []
        self.floor = 1
        self.degraded: set[str] = set()
        self.markers: dict[str, Json] = {}
        self.gone: dict[str, int] = {}
        self.trouble: deque[httpx.Response | Exception | None] = deque()
        self.item_trouble: dict[str, deque[No]] = defaultdict(deque)
        self.tokens = {"T"}
        self.largest: int | None = None
        self.requests: list[httpx.Request] = []
        self.naps: list[float] = []
        self._subscriptions = count(1)

    def runtime(self, **options: Any) -> Runtime:
        ids = (f"id-{number}" for number in count(1))
        settings = Settings(sleep=self._sleep, random=lambda: 1.0)
        known: Json = {"token": "T", "now": lambda: 1700000000.123, "new_id": lambda: next(ids)}
        return Runtime(URL, "r/1", **(known | {"settings": settings, "transport": self.transport()} | options))

    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self)

    def append(self, *event_ids: str) -> None:
        for event_id in event_ids:
            self.log.append({"event_id": event_id, "event_type": "DeliveryTrace", "seq_no": len(self.log) + 1})

    def fill(self, events: int) -> None:
        self.append(*(f"e{len(self.log) + number}" for number in range(1, events + 1)))

    def asked(self, method: str, ending: str) -> list[httpx.Request]:
        return [request for request in self.requests if request.method == method and request.url.path.endswith(ending)]

    async def _sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        await asyncio.sleep(0)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        trouble = self.trouble.popleft() if self.trouble else None
        if isinstance(trouble, httpx.Response):
            return trouble
        if trouble is not None and not isinstance(trouble, Lost):
            raise trouble
        try:
            answer = httpx.Response(200, json=self._answer(request))
        except No as error:
            answer = error.response()
        if isinstance(trouble, Lost):
            raise httpx.ReadTimeout("the answer is lost", request=request)
        return answer

    def _answer(self, request: httpx.Request) -> Json:
        if request.headers["Authorization"].removeprefix("Bearer ") not in self.tokens:
            raise No("SDK_SECURITY_AUTH_REQUIRED")
        prefix = "/v1/runtimes/r%2F1/"
        path = request.url.raw_path.decode().partition("?")[0]
        assert path.startswith(prefix), path
        match [request.method, *map(unquote, path.removeprefix(prefix).split("/"))]:
            case ["POST", "negotiate"]:
                return self._negotiate(json.loads(request.content))
            case ["GET", "status"]:
                return {"runtime_id": "r/1", "rebuilt": request.url.params.get("rebuild")}
            case ["POST", "streams", "s 1", "events"]:
                return self._emit(json.loads(request.content))
            case ["GET", "streams", "s 1", "events"]:
                return self._poll(request.url.params.get("cursor"), int(request.url.params.get("max", self.per_batch)))
            case ["POST", "markers"]:
                return self._create(json.loads(request.content))
            case ["GET", "markers"]:
                return self._list(request.url.params)
            case ["PATCH", "markers", marker_id, "position"]:
                return self._move(marker_id, **json.loads(request.content))
            case ["DELETE", "markers", marker_id]:
                return self._delete(marker_id, int(request.url.params["expected_revision"]))
        raise AssertionError(f"no such door: {request.method} {path}")

    def _negotiate(self, body: Json) -> Json:
        limits = {
            "max_poll_events": 256,
            "max_event_bytes": 65_536,
            "max_batch_bytes": 1 << 20,
            "max_extension_keys": 32,
        }
        limits |= body.get("limits", {})
        self.largest = None
        return {
            "runtime_id": "r/1",
            "active_contract_version": max(body["supported_contract_versions"]),
            "effective_capabilities": body["requested_capabilities"],
            "effective_limits": limits,
            "contract_release": "v2.5",
            "schema_namespace": "v2",
        }

    def _emit(self, body: Json) -> Json:
        if "events" not in body:
            return self._emit_one(body)
        assert 1 <= len(body["events"]) <= 100
        return {"results": list(self._emit_each(body["events"]))}

    def _emit_each(self, events: list[Json]) -> Iterator[Json]:
        for event in events:
            try:
                yield self._emit_one(event)
            except No as error:
                yield {"event_id": event["event_id"]} | error.body

    def _emit_one(self, event: Json) -> Json:
        event_id = event["event_id"]
        if self.item_trouble[event_id]:
            raise self.item_trouble[event_id].popleft()
        if "seq_no" in event:
            raise No("SDK_VALIDATION_INVALID_ARGUMENT", field="seq_no")
        known = next((known for known in self.log if known["event_id"] == event_id), None)
        if known is not None and known != event | {"seq_no": known["seq_no"]}:
            raise No("SDK_RUNTIME_CONFLICT", domain="event")
        if known is None:
            self.log.append(event | {"seq_no": len(self.log) + 1})
        return {"event_id": event_id, "seq_no": (known or self.log[-1])["seq_no"], "deduped": known is not None}

    def _poll(self, cursor: str | None, most: int) -> Json:
        events: list[Json] = []
        if cursor is None:
            subscription, position = str(next(self._subscriptions)), self.floor - 1
            dropped = position
            if dropped:
                events.append(gap(self.floor))
        else:
            subscription, position = self._place(cursor)
            dropped = 0
        for event in self.log[position : position + most - len(events)]:
            if self.largest is not None and event["seq_no"] >= self.largest:
                if not events:
                    details = {"seq_no": event["seq_no"], "event_bytes": 900, "max_batch_bytes": 800}
                    raise No("SDK_VALIDATION_BATCH_TOO_LARGE", **details)
                break
            events.append(event)
        position = events[-1]["seq_no"] if events else position
        return {"events": events, "next_cursor": f"{subscription}@{position}", "dropped_count": dropped}

    def _place(self, cursor: str) -> tuple[str, int]:
        subscription, at, position = cursor.partition("@")
        if not at:
            raise No("SDK_RUNTIME_INVALID_CURSOR", field="cursor")
        if subscription in self.degraded:
            raise No("SDK_RUNTIME_STREAM_DEGRADED")
        if int(position) < self.floor - 1:
            self.degraded.add(subscription)
            raise No("SDK_RUNTIME_CURSOR_EXPIRED", floor_seq_no=self.floor)
        return subscription, int(position)

    def _create(self, body: Json) -> Json:
        marker_id = body["marker_id"]
        if marker_id in self.markers:
            raise self._stale(marker_id, 0)
        return self._write(body, self.gone.pop(marker_id, 0) + 1)

    def _move(self, marker_id: str, position: Json, expected_revision: int, **given: Json) -> Json:
        marker = self._live(marker_id, expected_revision)
        return self._write(marker | {"position": position} | given, expected_revision + 1)

    def _delete(self, marker_id: str, expected_revision: int) -> Json:
        if marker_id not in self.markers:
            return {"accepted": False, "marker_id": marker_id}
        self.gone[marker_id] = self._live(marker_id, expected_revision)["revision"] + 1
        del self.markers[marker_id]
        return {"accepted": True, "marker_id": marker_id, "revision": self.gone[marker_id]}

    def _live(self, marker_id: str, expected_revision: int) -> Json:
        if marker_id not in self.markers:
            raise No("SDK_RUNTIME_NOT_FOUND", domain="marker", marker_id=marker_id)
        if self.markers[marker_id]["revision"] != expected_revision:
            raise self._stale(marker_id, expected_revision)
        return self.markers[marker_id]

    def _stale(self, marker_id: str, expected: int) -> No:
        observed = self.markers[marker_id]["revision"]
        details = {"marker_id": marker_id, "expected_revision": expected, "observed_revision": observed}
        return No("SDK_RUNTIME_CONFLICT", domain="marker", **details)

    def _write(self, record: Json, revision: int) -> Json:
        self.markers[record["marker_id"]] = record | {"revision": revision, "updated_ts_ms": 1}
        return {"accepted": True, "marker": self.markers[record["marker_id"]]}

    def _list(self, query: httpx.QueryParams) -> Json:
        """A page may be short, or empty, although there are more."""
        ids = sorted(marker_id for marker_id in self.markers if marker_id > query.get("cursor", ""))
        page = [self.markers[marker_id] for marker_id in ids[: self.per_page]]
        wanted = [record for record in page if query.get("topic_id") in (None, record.get("topic_id"))]
        return {"markers": wanted, "next_cursor": ids[self.per_page - 1] if len(ids) > self.per_page else None}


def gap(floor: int) -> Json:
    payload = {"expected_seq_no": 1, "observed_seq_no": floor, "dropped_count": floor - 1}
    return {"event_id": f"gap-{floor - 1}", "event_type": "StreamGap", "seq_no": floor - 1, "payload": payload}


def run(test: Coroutine[Any, Any, None]) -> None:
    async def timed() -> None:
        async with asyncio.timeout(WAITS):
            await test

    asyncio.run(timed())
