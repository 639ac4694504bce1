"""The transcript of a realtime session (R8): of each utterance the one event that tells it best.

Which event wins depends on the events alone, never on the order they come in: `better` is associative, commutative
and idempotent, so a fold, a running state and a distributed aggregation all give the same transcript.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from millrace.ledger.domain.instants import instant

PARTIAL, FINAL = "transcript.partial", "transcript.final"

Event = Mapping[str, Any]
Transcript = dict[str, Event]
"""By `utteranceId`, the best event so far."""


def rank(event: Event) -> tuple[bool, int, str]:
    """Finals above partials, then by instant, then by `eventId` in code point order, which UTF-8 bytes have too."""
    return event["type"] == FINAL, instant(event["ts"]), event["eventId"]


def better(a: Event, b: Event) -> Event:
    """The event that tells an utterance of both. Equal ranks are one event: an `eventId` is used once."""
    return a if rank(a) >= rank(b) else b


def merge(transcript: Transcript, event: Event) -> Transcript:
    """Take one event into the transcript, in place; events of other types change nothing."""
    if event["type"] in (PARTIAL, FINAL):
        utterance = event["payload"]["utteranceId"]
        known = transcript.get(utterance)
        transcript[utterance] = event if known is None else better(known, event)
    return transcript


def lines(transcript: Transcript) -> list[dict[str, Any]]:
    """The transcript as it is read: by `startMs`, then `utteranceId`."""
    return sorted((line(event) for event in transcript.values()), key=place)


def place(line: Mapping[str, Any]) -> tuple[int, str]:
    """By what the lines of a transcript are ordered."""
    return line["startMs"], line["utteranceId"]


def materialise(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The transcript of a session's events with their `sequence`, in any order, each given once or more."""
    transcript: Transcript = {}
    for event in events:
        merge(transcript, event)
    return lines(transcript)


def line(event: Event) -> dict[str, Any]:
    """One utterance as its event tells it. A time sent as 1.0 is the integer 1."""
    payload = event["payload"]
    return {
        "utteranceId": payload["utteranceId"],
        "speaker": payload["speaker"],
        "text": payload["text"],
        "startMs": int(payload["startMs"]),
        "endMs": int(payload["endMs"]),
        "final": event["type"] == FINAL,
        "eventId": event["eventId"],
        "sequence": event["sequence"],
        "ts": event["ts"],
    }
