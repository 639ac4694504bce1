"""What `make demo` leaves to look at: events, a session with its transcript, a stream with markers, and targets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millrace_client.operator.hub import Operator
from millrace_client.sessions import Realtime
from millrace_client.streams.markers import Position
from millrace_client.streams.runtime import Runtime
from millrace_client.streams.sdk_errors import Conflict

PROJECT, SESSION, RUNTIME, STREAM = "demo", "demo-call", "demo-boat", "radio"
STUB, FAILING = "demo-stub", "demo-failing"
NOWHERE = "https://nobody.invalid/hook"
"""No name below `invalid` is ever resolved, so nothing leaves the machine."""
STARTED_MS = 1_771_236_000_000
SAID = (
    ("agent", "Good morning, how can I help?"),
    ("user", "Where is my order?"),
    ("agent", "It was shipped yesterday."),
)
CAMPS = {"harbour": Position(47.37, 8.54), "buoy": Position(47.31, 8.58), "camp": Position(47.22, 8.69)}


@dataclass(frozen=True, slots=True)
class Scene:
    """All ids and times are fixed: to set it again changes nothing."""

    url: str
    token: str

    def set(self) -> list[str]:
        """Each line says what is there and the command that shows it."""
        with Operator(self.url, self.token) as hub, Realtime(self.url, self.token) as sessions:
            self._targets(hub)
            hub.submit(PROJECT, [_order(number) for number in range(1, 21)])
            sessions.publish_many([*_call()])
        asyncio.run(self._stream())
        return [
            f"20 events of project {PROJECT}: millrace events list sync {PROJECT}",
            f"the session {SESSION}: millrace sessions transcript {SESSION}",
            f"the stream {RUNTIME}/{STREAM} and {len(CAMPS)} markers: millrace markers list {RUNTIME}",
            f"the target {STUB} that takes all, and {FAILING} that nobody answers at: millrace targets list",
        ]

    def _targets(self, hub: Operator) -> None:
        sources = [{"contract": "sync", "scope": PROJECT}]
        hub.targets.put(STUB, {"type": "stub", "sources": sources})
        hub.targets.put(FAILING, {"type": "external", "mode": "webhook", "url": NOWHERE, "sources": sources})

    async def _stream(self) -> None:
        async with Runtime(self.url, RUNTIME, self.token) as runtime:
            await runtime.negotiate("desktop-full")
            await runtime.stream(STREAM).emit([_tuned(number) for number in range(8)])
            for marker_id, position in CAMPS.items():
                try:
                    await runtime.markers.create(marker_id.title(), position, marker_id=marker_id)
                except Conflict:
                    continue  # it is there from the last time


def _order(number: int) -> dict[str, Any]:
    kind = "order.paid" if number % 2 else "order.placed"
    event = {"type": kind, "payload": {"order": (number + 1) // 2, "amount": 10 * number}}
    return {"id": f"demo-order-{number}", "partitions": ["orders"], "event": event}


def _call() -> list[Mapping[str, Any]]:
    events: list[Mapping[str, Any]] = []
    for number, (speaker, text) in enumerate(SAID):
        payload = {
            "callId": "demo",
            "utteranceId": f"u{number}",
            "speaker": speaker,
            "text": text,
            "startMs": 2000 * number,
            "endMs": 2000 * number + 1500,
        }
        events.append(
            {
                "eventId": f"demo-said-{number}",
                "sessionId": SESSION,
                "ts": f"2026-02-16T10:00:0{2 * number}.000Z",
                "type": "transcript.final",
                "payload": payload,
                "schemaVersion": "1.0",
            }
        )
    return events


def _tuned(number: int) -> dict[str, Any]:
    return {
        "event_id": f"demo-tuned-{number}",
        "event_type": "acme.radio.tuned",
        "ts_ms": STARTED_MS + 1000 * number,
        "source_component": "demo",
        "payload": {"mhz": 868 + number},
    }
