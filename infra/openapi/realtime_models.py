"""The bodies of the realtime routes as models: the published description of what realtime/doors/ checks and answers.

What each type's payload holds is in the JSON Schema of the type, served beside this description.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from infra.limits import TEXTS
from infra.openapi.models import Closed
from millrace.ledger.domain.instants import UTC_DATE_TIME
from millrace.ledger.domain.naming import MAX_NAME_BYTES, NOT_BLANK
from millrace.realtime.doors.registry import MAX_BYTES, TYPES, VERSION
from millrace.realtime.doors.requests import MAX_SEQUENCE
from millrace.runtime.requests import MAX_BATCH


def _text(max_bytes: int, meaning: str) -> Any:
    return Field(
        min_length=1,
        max_length=max_bytes,
        pattern=NOT_BLANK,
        description=f"{meaning} At most {max_bytes} bytes of UTF-8.",
    )


Instant = Annotated[
    str, Field(pattern=f"^{UTC_DATE_TIME}$", examples=["2026-02-16T10:00:00.000Z"], description="A date-time in UTC.")
]
Sequence = Annotated[int, Field(ge=1, description="Its place in the session's log, without gaps from 1.")]


class Camel(Closed):
    model_config = ConfigDict(alias_generator=to_camel)


class RealtimeEvent(Camel):
    """Exactly these six. On the way in, `timestamp` is read as `ts` and `version` as `schemaVersion`."""

    event_id: Annotated[str, _text(MAX_BYTES["eventId"], "Yours. The same id again is the same event, tenant-wide.")]
    session_id: Annotated[str, _text(MAX_BYTES["sessionId"], "The session whose log the event joins.")]
    ts: Instant
    type: Annotated[
        str, Field(json_schema_extra={"enum": list(TYPES)}, description="Its schema: `/v1/realtime/schemas/{type}`.")
    ]
    payload: Annotated[dict[str, JsonValue], Field(description="The type's own fields, and any others.")]
    schema_version: Annotated[str, Field(pattern=f"^{VERSION}$", examples=["1.0"])]


class StoredEvent(RealtimeEvent):
    """An event as it was sent, with its place."""

    sequence: Sequence


class RealtimeBatch(Camel):
    __doc__ = f"At most {TEXTS['http-body']}; one event at most {TEXTS['realtime-event']}."

    events: Annotated[list[RealtimeEvent], Field(min_length=1, max_length=MAX_BATCH)]


class PointedError(Camel):
    pointer: Annotated[str, Field(description="JSON Pointer of the place as it was sent; empty is the whole.")]
    message: str


class RealtimeError(Camel):
    """An event, or a request, that was refused: every error at once."""

    ok: Literal[False]
    code: Literal[
        "INVALID_REALTIME_EVENT", "INVALID_REALTIME_REQUEST", "EVENT_ID_CONFLICT", "EVENT_TOO_LARGE", "FORBIDDEN"
    ]
    message: str
    errors: list[PointedError]
    retryable: bool
    eventId: Annotated[str | None, Field(description="In a batch: the event that was refused.")] = None  # noqa: N815
    details: Annotated[dict[str, Any] | None, Field(description="Present when the request as a whole is wrong.")] = None


class PublishAnswer(Camel):
    ok: Literal[True]
    deduped: Annotated[bool, Field(description="Whether it was stored before; then nothing was written.")]
    event: StoredEvent


class PublishBatchAnswer(Camel):
    """One result per event, in the order of the request; one that is refused undoes no other."""

    ok: Annotated[bool, Field(description="Whether every result is.")]
    results: list[PublishAnswer | RealtimeError]


class RealtimeWatermark(Camel):
    """A place in a session."""

    sequence: Annotated[int | None, Field(ge=0, description="Null if only its time is known.")]
    ts: Instant
    event_id: str


class Late(Camel):
    """Events with a `ts` before the watermark that were stored after it: time order does not reach them."""

    count: Annotated[int, Field(ge=1)]
    after_sequence: Annotated[int, Field(ge=1, description="Read them with this `afterSequence`.")]


class ReplayAnswer(Camel):
    __doc__ = f"A page holds at most `limit` events and {TEXTS['replay-page']}."

    ok: Literal[True]
    session_id: str
    events: list[StoredEvent]
    has_more: bool
    watermark: Annotated[
        RealtimeWatermark | None, Field(description="The last event's place, else the one read from; null if neither.")
    ]
    pruned_through: Annotated[int | None, Field(description="Present when history up to here was pruned.")] = None
    late: Annotated[Late | None, Field(description="Present when a watermark was passed by older events.")] = None


class CheckpointRequest(Camel):
    consumer_id: Annotated[str, _text(MAX_NAME_BYTES, "Who reads.")]
    watermark_ts: Instant
    watermark_event_id: Annotated[str, _text(MAX_BYTES["eventId"], "The last event that was handled.")]
    watermark_sequence: Annotated[
        int | None, Field(ge=0, le=MAX_SEQUENCE, description="With it, replay goes on by sequence and misses nothing.")
    ] = None


class CheckpointAnswer(Camel):
    ok: Literal[True]
    applied: Annotated[bool, Field(description="False if it would have gone back; then nothing changed.")]


class Utterance(Camel):
    """What was said: a final text beats any partial, then the greater (`ts`, `eventId`)."""

    utterance_id: str
    speaker: Literal["user", "agent", "unknown"]
    text: str
    start_ms: Annotated[int, Field(ge=0)]
    end_ms: Annotated[int, Field(ge=0)]
    final: bool
    event_id: str
    sequence: Sequence
    ts: Instant


class TranscriptAnswer(Camel):
    __doc__ = f"An answer holds at most {TEXTS['replay-page']}, and one utterance at least."

    ok: Literal[True]
    session_id: str
    sequence: Annotated[int, Field(ge=0, description="The place in the log it was taken at.")]
    utterances: Annotated[list[Utterance], Field(description="By `startMs`, then `utteranceId`.")]
    has_more: Annotated[
        bool,
        Field(description="Ask again with `afterStartMs` and `afterUtteranceId` of the last utterance."),
    ]
    complete: Annotated[
        bool,
        Field(description="False when events were pruned before their text was kept, by a hub older than this one."),
    ]
    pruned_through: Annotated[
        int | None,
        Field(description="Present when events up to here can no longer be replayed; their text is kept."),
    ] = None


class RealtimeMetricsAnswer(Camel):
    """Counts of the tenant since its beginning."""

    ok: Literal[True]
    emitted: Annotated[int, Field(ge=0, description="Events newly stored.")]
    invalid: Annotated[int, Field(ge=0, description="Events that broke a rule.")]
    deduped: Annotated[int, Field(ge=0, description="Events that were stored before.")]


MODELS: tuple[type[BaseModel], ...] = (
    RealtimeEvent,
    RealtimeBatch,
    RealtimeError,
    PublishAnswer,
    PublishBatchAnswer,
    ReplayAnswer,
    CheckpointRequest,
    CheckpointAnswer,
    TranscriptAnswer,
    RealtimeMetricsAnswer,
)
