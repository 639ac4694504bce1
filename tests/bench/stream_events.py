"""Events of a runtime's stream for the bench: half a kilobyte as stored, realistic or hard to compress."""

from __future__ import annotations

import base64
import random
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.page import Draft
from millrace.streams.domain.envelope import TRANSITION, check_event
from millrace.streams.domain.negotiate import CONTRACT_VERSION, Negotiated, negotiate
from millrace.streams.domain.privacy import Policy, hasher
from tests.bench.events import CONTENT_BYTES, TEXT

RUNTIME, STREAM = "bench-runtime", "bench-stream"
POLICY = Policy.of({})
NEGOTIATED: Negotiated = negotiate({"supported_contract_versions": [CONTRACT_VERSION]})
HASHED = hasher(b"bench")
INTERFACES = ("serial-0", "radio-1", "tcp-2", "ble-3")


def _words(rng: random.Random, room: int) -> str:
    words = TEXT.split()
    return " ".join(rng.choice(words) for _ in range(room))[:room]


def _noise(rng: random.Random, room: int) -> str:
    return base64.b64encode(rng.randbytes(room)).decode()[:room]


FILLERS: Mapping[str, Callable[[random.Random, int], str]] = {"realistic": _words, "random": _noise}


def stream_events(
    kind: str, count: int, seed: int, runtime: str = RUNTIME, stream: str = STREAM, size: int = CONTENT_BYTES
) -> list[dict[str, Any]]:
    """As a runtime emits them; the same seed gives the same events."""
    rng = random.Random(f"streams/{kind}/{seed}")
    return [_filled(_interface(rng, number, runtime, stream), rng, kind, size) for number in range(count)]


def transitions(
    count: int, seed: int, to: str, runtime: str = RUNTIME, stream: str = STREAM, size: int = CONTENT_BYTES
) -> list[dict[str, Any]]:
    """One delivery transition each of so many messages. The same seed means the same messages, whatever their state."""
    rng, messages = random.Random(f"{to}/{seed}"), random.Random(f"messages/{seed}")
    events = []
    for number in range(count):
        event = _envelope(rng, number, runtime, stream, TRANSITION)
        event["message_id"] = _id(messages)
        event["payload"] = {"to": to, "attempt": 1, "interface": rng.choice(INTERFACES)}
        events.append(_filled(event, rng, "realistic", size))
    return events


def stream_drafts(kind: str, count: int, seed: int, stream: str = STREAM) -> list[Draft]:
    events = stream_events(kind, count, seed, stream=stream)
    return [check_event(event, RUNTIME, stream, NEGOTIATED, POLICY, HASHED).draft for event in events]


def _interface(rng: random.Random, number: int, runtime: str, stream: str) -> dict[str, Any]:
    event = _envelope(rng, number, runtime, stream, "InterfaceStateChanged")
    event["payload"] = {
        "interface": rng.choice(INTERFACES),
        "state": rng.choice(("up", "down", "degraded")),
        "rx_bytes": rng.randrange(10**7),
        "tx_bytes": rng.randrange(10**7),
    }
    return event


def _envelope(rng: random.Random, number: int, runtime: str, stream: str, kind: str) -> dict[str, Any]:
    return {
        "event_id": _id(rng),
        "runtime_id": runtime,
        "stream_id": stream,
        "contract_version": CONTRACT_VERSION,
        "ts_ms": 1_790_000_000_000 + 200 * number,
        "event_type": kind,
        "severity": rng.choice(("debug", "info", "warn")),
        "source_component": "link-manager",
    }


def _filled(event: dict[str, Any], rng: random.Random, kind: str, size: int) -> dict[str, Any]:
    event["payload"]["detail"] = ""
    event["payload"]["detail"] = FILLERS[kind](rng, size - len(canonical(event)))
    return event


def _id(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))
