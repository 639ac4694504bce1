"""CPU of redaction per KB of payload, beside canonical JSON of the same value."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from millrace.ledger.domain.canonical import canonical
from millrace.streams.domain.privacy import normal_name
from tests.bench.events import TEXT
from tests.bench.stream_events import HASHED, POLICY

FIELDS = 80
"""Of a payload; about 4 KB."""
PAYLOADS = 200
REPETITIONS = 15
SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    str.upper,
    str.title,
    lambda name: name.replace("_", "-"),
    lambda name: name.title().replace("_", ""),
)
SENSITIVE = [spell(name) for spell in SPELLINGS for name in ("peer_id", "trace_id")]
SECRET = [spell(name) for spell in SPELLINGS for name in ("auth_token", "session_secret")]
HIDDEN: Mapping[str, list[str]] = {"nothing": [], "a tenth sensitive": SENSITIVE[:8], "a tenth secret": SECRET[:8]}


def rows() -> list[dict[str, Any]]:
    cases: list[tuple[str, str, Callable[[int], list[Any]]]] = [
        (shape, hidden, partial(_payloads, make, names))
        for shape, make in (("flat", _flat), ("nested", _nested))
        for hidden, names in HIDDEN.items()
    ]
    cases.append(("flat, every name new", "nothing", _strangers))
    return [_row(shape, hidden, make) for shape, hidden, make in cases]


def _row(shape: str, hidden: str, make: Callable[[int], list[Any]]) -> dict[str, Any]:
    floor, sifting, kilobytes = [], [], 0.0
    for repetition in range(REPETITIONS):
        payloads = make(repetition)
        kilobytes = sum(len(canonical(payload)) for payload in payloads) / 1024
        if repetition == 0:
            normal_name.cache_clear()
        floor.append(_cpu(canonical, payloads) / kilobytes)
        sifting.append(_cpu(_redact, payloads) / kilobytes)
    return {
        "payload": shape,
        "hidden": hidden,
        "KB": round(kilobytes / PAYLOADS, 1),
        "floor: canonical JSON": round(min(floor), 1),
        "redaction": round(min(sifting), 1),
        "redaction / floor": round(min(sifting) / min(floor), 2),
    }


def _redact(payload: Any) -> None:
    """What an emission does: secrets go before anything is checked, the rest is taken apart after."""
    POLICY.sift(POLICY.without_secrets(payload), HASHED)


def _cpu(work: Callable[[Any], object], payloads: list[Any]) -> float:
    started = time.process_time()
    for payload in payloads:
        work(payload)
    return (time.process_time() - started) * 1e6


def _payloads(make: Callable[[random.Random, list[str]], Any], names: list[str], seed: int) -> list[Any]:
    rng = random.Random(f"privacy/{seed}")
    return [make(rng, names) for _ in range(PAYLOADS)]


def _flat(rng: random.Random, hidden: list[str]) -> dict[str, Any]:
    names = [*hidden, *(f"reading_{number:03d}" for number in range(FIELDS - len(hidden)))]
    return {name: _value(rng) for name in names}


def _nested(rng: random.Random, hidden: list[str]) -> dict[str, Any]:
    """The same fields in lists of objects, four objects deep."""
    flat = list(_flat(rng, hidden).items())
    rng.shuffle(flat)
    groups = [dict(flat[at : at + 5]) for at in range(0, len(flat), 5)]
    return {
        "links": [
            {"name": f"link-{at}", "routes": [{"hops": group} for group in groups[at : at + 4]]}
            for at in range(0, len(groups), 4)
        ]
    }


def _strangers(seed: int) -> list[Any]:
    """Names no policy has met: ids used as keys."""
    rng = random.Random(f"strangers/{seed}")
    return [{f"id-{rng.getrandbits(32):08x}": _value(rng) for _ in range(FIELDS)} for _ in range(PAYLOADS)]


def _value(rng: random.Random) -> Any:
    words = TEXT.split()
    return rng.randrange(10**9) if rng.random() < 0.3 else " ".join(rng.choice(words) for _ in range(6))
