"""What the realtime doors take: one event or many, replay parameters, checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.instants import instant
from millrace.ledger.domain.kinds import kind_of
from millrace.ledger.domain.naming import MAX_NAME_BYTES, is_blank
from millrace.realtime.application.replay import ReplayRequest
from millrace.realtime.ports import Watermark
from millrace.runtime.requests import whole

LIMIT_DEFAULT, LIMIT_MAX = 100, 500
MAX_SEQUENCE = 2**53 - 1
MAX_DIGITS = 4_000
"""Of a `startMs`, which has no largest value; Python reads no longer integers."""


def replay_of(query: Callable[[str], str | None]) -> ReplayRequest:
    after, consumer = query("afterSequence"), query("consumerId")
    ts, event_id = query("afterTs"), query("afterEventId")
    if consumer is not None:
        _name("consumerId", consumer)
    if (ts is None) != (event_id is None):
        raise BadRequest(
            "afterTs and afterEventId go together.", field="afterEventId" if event_id is None else "afterTs"
        )
    watermark = None
    if ts is not None and event_id is not None:
        watermark = Watermark(ts, _instant("afterTs", ts), event_id)
    return ReplayRequest(
        None if after is None else whole("afterSequence", after, 0, MAX_SEQUENCE),
        consumer,
        watermark,
        whole("limit", query("limit") or str(LIMIT_DEFAULT), 1, LIMIT_MAX),
    )


def transcript_place_of(query: Callable[[str], str | None]) -> tuple[int, str] | None:
    """The utterance after which to go on reading a transcript; None for its beginning."""
    start, utterance = query("afterStartMs"), query("afterUtteranceId")
    if start is None and utterance is None:
        return None
    if start is None or utterance is None:
        missing = "afterStartMs" if start is None else "afterUtteranceId"
        raise BadRequest("afterStartMs and afterUtteranceId go together.", field=missing)
    if not (start.isascii() and start.isdigit()) or len(start) > MAX_DIGITS:
        raise BadRequest("afterStartMs must be an integer from 0, as startMs of an utterance.", field="afterStartMs")
    return int(start), utterance


def checkpoint_of(body: Any) -> tuple[str, Watermark]:
    if not isinstance(body, dict):
        raise BadRequest("A checkpoint is an object.", field="body", value_class=kind_of(body))
    unknown = sorted(body.keys() - {"consumerId", "watermarkTs", "watermarkEventId", "watermarkSequence"})
    if unknown:
        raise BadRequest("A checkpoint has an unknown key.", field=unknown[0][:64])
    consumer = _name("consumerId", body.get("consumerId"))
    ts = _name("watermarkTs", body.get("watermarkTs"))
    event_id = _name("watermarkEventId", body.get("watermarkEventId"), 256)
    sequence = body.get("watermarkSequence")
    if sequence is not None and not (type(sequence) is int and 0 <= sequence <= MAX_SEQUENCE):
        raise BadRequest(f"watermarkSequence must be an integer from 0 to {MAX_SEQUENCE}.", field="watermarkSequence")
    return consumer, Watermark(ts, _instant("watermarkTs", ts), event_id, sequence)


def _name(field: str, value: Any, max_bytes: int = MAX_NAME_BYTES) -> str:
    if not isinstance(value, str) or is_blank(value) or len(value.encode()) > max_bytes:
        rule = f"{field} must be a non-blank string of at most {max_bytes} bytes."
        raise BadRequest(rule, field=field, value_class=kind_of(value))
    return value


def _instant(field: str, text: str) -> int:
    try:
        return instant(text)
    except ValueError as error:
        raise BadRequest(
            f"{field} must be an ISO-8601 time in UTC, such as 2026-02-16T10:00:00.000Z.", field=field
        ) from error
