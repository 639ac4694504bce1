"""The status of a runtime as models: what streams/domain/status.py folds a stream's events into."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, JsonValue

from infra.openapi.models import Closed
from infra.openapi.streams_models import Milliseconds, SeqNo, Severity, Sparse

Count = Annotated[int, Field(ge=0)]


class Seen(Closed):
    """The event that said so."""

    event_id: str
    seq_no: SeqNo
    ts_ms: Milliseconds


class LastEvent(Seen):
    event_type: str


class LastError(Seen):
    severity: Severity
    source_component: str


class StateSeen(Seen):
    state: Annotated[str | None, Field(description="Null if the event names none.")]


class HealthSeen(Seen):
    snapshot: Annotated[dict[str, JsonValue], Field(description="Its plain values.")]


class StreamProjection(Sparse):
    """The stream's events, folded. What no event has said is left out."""

    events: Count
    by_type: Annotated[dict[str, Count], Field(description="Extension events count as `ExtensionEvent`.")]
    by_severity: dict[str, Count]
    deliveries: Annotated[dict[str, Count], Field(description="State → messages that reached it.")]
    interfaces: dict[str, StateSeen]
    runtime_state: StateSeen | None = None
    last_event: LastEvent | None = None
    last_error: LastError | None = None
    health: HealthSeen | None = None


class StreamStatus(Closed):
    stream_id: str
    seq_no: Annotated[int, Field(ge=0, description="The place in the stream it was taken at.")]
    floor_seq_no: Annotated[int, Field(ge=0, description="The oldest place that is retained.")]
    from_seq_no: Annotated[int, Field(ge=0, description="The first place that was folded.")]
    complete: Annotated[bool, Field(description="Whether nothing was pruned before it could be folded.")]
    projection: StreamProjection


class StatusAnswer(Closed):
    """Each stream at a place of its own: there is no order between streams."""

    runtime_id: str
    taken_ts_ms: Milliseconds
    streams: list[StreamStatus]


MODELS: tuple[type[BaseModel], ...] = (StatusAnswer,)
