"""Events of half a kilobyte: their canonical content is 500 bytes, realistic or hard to compress."""

from __future__ import annotations

import base64
import random
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from millrace.ledger.domain.access import CONSUMER, PRODUCER, Identity
from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.page import Draft
from millrace.sync.domain.submit import check_item

CONTENT_BYTES = 500
PARTITIONS = 10
IDENTITY = Identity("bench-client", "default", frozenset({"demo"}), ("*",), frozenset({PRODUCER, CONSUMER}), "default")
TEXT = (
    "please leave the parcel at the back door and ring twice customer asked for an invoice by mail fragile glass "
    "second delivery attempt address confirmed by phone gift wrap express window seat refund pending stock moved"
)
STATES = ("created", "paid", "packed", "shipped", "delivered", "returned")


def _realistic(rng: random.Random, size: int) -> dict[str, Any]:
    payload = {
        "order_id": f"ORD-{rng.randrange(10**8):08d}",
        "customer": {"id": rng.randrange(10**6), "country": rng.choice(["DE", "FR", "PL", "SE"]), "vip": False},
        "state": rng.choice(STATES),
        "lines": [
            {"sku": f"SKU-{rng.randrange(10**5):05d}", "quantity": rng.randrange(1, 9), "cents": rng.randrange(10**5)}
            for _ in range(3)
        ],
        "updated_at": f"2026-03-{rng.randrange(1, 29):02d}T{rng.randrange(24):02d}:{rng.randrange(60):02d}:00Z",
        "note": "",
    }
    event = {"type": "order.updated", "payload": payload}
    room = size - len(canonical(event))
    words = TEXT.split()
    payload["note"] = " ".join(rng.choice(words) for _ in range(room))[:room]
    return event


def _with_floats(rng: random.Random, size: int) -> dict[str, Any]:
    """Floats leave the fast path of canonical JSON."""
    event = _realistic(rng, size)
    for line in event["payload"]["lines"]:
        line["price"] = line.pop("cents") / 100
    return event


def _random(rng: random.Random, size: int) -> dict[str, Any]:
    """Base64 of random bytes: as text goes, only the unused quarter of each byte can be squeezed out."""
    event = {"type": "blob", "payload": ""}
    room = size - len(canonical(event))
    event["payload"] = base64.b64encode(rng.randbytes(room)).decode()[:room]
    return event


KINDS: Mapping[str, Callable[[random.Random, int], dict[str, Any]]] = {"realistic": _realistic, "random": _random}
KINDS_WITH_FLOATS = {**KINDS, "with floats": _with_floats}


def items(kind: str, count: int, seed: int, size: int = CONTENT_BYTES) -> list[dict[str, Any]]:
    """Items of a submit request, each in one of ten partitions; the same seed gives the same items."""
    rng = random.Random(f"{kind}/{seed}")
    return [
        {
            "id": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
            "partitions": [f"team-{number % PARTITIONS}"],
            "event": KINDS_WITH_FLOATS[kind](rng, size),
        }
        for number in range(count)
    ]


def drafts(kind: str, count: int, seed: int, size: int = CONTENT_BYTES) -> list[Draft]:
    checked = [check_item(item, IDENTITY, "open") for item in items(kind, count, seed, size)]
    return [draft for draft in checked if isinstance(draft, Draft)]
