"""Realtime events for the bench: each type's documented example, with ids, sessions and times of their own."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from typing import Any

from infra.realtime_docs import example
from millrace.realtime.application.publish import Publication
from millrace.realtime.domain.transcript import FINAL, PARTIAL
from millrace.realtime.doors.registry import TYPES
from millrace.realtime.doors.validate import Valid, validate
from tests.bench.events import TEXT

STEP_MS = 200
SAID = (PARTIAL, PARTIAL, FINAL)
"""What is published of one utterance."""


def of_type(name: str, count: int, seed: int, session: str = "sess_123") -> list[dict[str, Any]]:
    return _events([name] * count, seed, [session])


def mixed(count: int, seed: int, sessions: Sequence[str]) -> list[dict[str, Any]]:
    """Every type in turn, the sessions in turn."""
    names = list(TYPES)
    return _events([names[number % len(names)] for number in range(count)], seed, sessions)


def spoken(utterances: int, seed: int, session: str) -> list[dict[str, Any]]:
    """Of each utterance two partials and the final, each with more of its twelve words."""
    rng, words = random.Random(f"spoken/{seed}"), TEXT.split()
    events = _events(list(SAID) * utterances, seed, [session])
    for number in range(utterances):
        text = [rng.choice(words) for _ in range(12)]
        for part, event in enumerate(events[number * len(SAID) : (number + 1) * len(SAID)], 1):
            said = {"utteranceId": f"utt_{number}", "speaker": "user", "text": " ".join(text[: 4 * part])}
            start = number * len(SAID) * STEP_MS
            event["payload"] = {**said, "startMs": start, "endMs": start + part * STEP_MS}
    return events


def checked(events: Sequence[dict[str, Any]]) -> list[Publication]:
    results = [validate(event) for event in events]
    valid = [Publication(one.event, one.instant) for one in results if isinstance(one, Valid)]
    assert len(valid) == len(events), results
    return valid


def _events(names: Sequence[str], seed: int, sessions: Sequence[str]) -> list[dict[str, Any]]:
    rng = random.Random(f"realtime/{seed}")
    examples = {name: example(name) for name in set(names)}
    return [
        {
            **examples[name],
            "eventId": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
            "sessionId": sessions[number % len(sessions)],
            "ts": _time(number),
        }
        for number, name in enumerate(names)
    ]


def _time(number: int) -> str:
    seconds, ms = divmod(number * STEP_MS, 1_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"2026-02-16T{10 + hour:02d}:{minute:02d}:{second:02d}.{ms:03d}Z"
