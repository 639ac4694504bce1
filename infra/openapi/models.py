"""The bodies of the HTTP API as models: the published description of what sync/domain/ checks and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from infra.limits import TEXTS
from millrace.sync.domain.read import LIMIT_DEFAULT, LIMIT_MAX, LIMIT_MIN, MAX_POSITION
from millrace.sync.domain.submit import MAX_BATCH, MAX_ID_BYTES, MAX_PARTITION_BYTES, MAX_PARTITIONS

Partition = Annotated[
    str,
    Field(min_length=1, max_length=MAX_PARTITION_BYTES, description=f"At most {MAX_PARTITION_BYTES} bytes of UTF-8."),
]
Position = Annotated[int, Field(ge=0, le=MAX_POSITION)]


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class EventContent(BaseModel):
    """What happened. Further members are kept as sent."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, Field(min_length=1, examples=["note.added"])]
    payload: Annotated[JsonValue, Field(description="Any JSON value.", examples=[{"text": "hello"}])]


class Item(BaseModel):
    """One event to commit. Unknown members are ignored."""

    id: Annotated[
        str,
        Field(min_length=1, description=f"Yours, at most {MAX_ID_BYTES} bytes. The same id again is the same event."),
    ]
    partitions: Annotated[
        list[Partition],
        Field(min_length=1, max_length=MAX_PARTITIONS, json_schema_extra={"uniqueItems": True}),
    ]
    event: EventContent
    client_id: Annotated[str | None, Field(description="If given, the token's own client_id.")] = None
    meta: Annotated[dict[str, JsonValue] | None, Field(description="Kept with the event, not compared.")] = None


class SubmitRequest(BaseModel):
    __doc__ = f"At most {TEXTS['http-body']}; one event with its id, partitions and meta at most {TEXTS['event']}."

    events: Annotated[list[Item], Field(min_length=1, max_length=MAX_BATCH)]


class FieldError(Closed):
    field: str
    message: str


class Committed(Closed):
    id: str
    status: Literal["committed"]
    committed_id: Annotated[int, Field(ge=1)]
    status_updated_at: Annotated[int, Field(description="When it was first committed, in ms since 1970.")]


class RejectedItem(Closed):
    id: str
    status: Literal["rejected"]
    reason: Literal["validation_failed", "forbidden"]
    errors: list[FieldError]
    status_updated_at: int


class SubmitAnswer(Closed):
    """One result per item, in the order of the request."""

    results: list[Annotated[Committed | RejectedItem, Field(discriminator="status")]]


class SyncRequest(BaseModel):
    since_committed_id: Annotated[Position, Field(description="Read after this one; 0 is the start.")]
    partitions: Annotated[
        list[Partition] | None,
        Field(min_length=1, max_length=MAX_PARTITIONS, description="Left out: the whole project (a token for `*`)."),
    ] = None
    limit: Annotated[
        int | None,
        Field(description=f"Events at most; coerced into {LIMIT_MIN}..{LIMIT_MAX}.", examples=[LIMIT_DEFAULT]),
    ] = None
    sync_to_committed_id: Annotated[
        Position | None, Field(description="From the second page on: what the first page answered.")
    ] = None


class CommittedEvent(Closed):
    committed_id: Annotated[int, Field(ge=1)]
    id: str
    client_id: str
    partitions: list[str]
    event: dict[str, Any]
    meta: dict[str, Any] | None = None
    status_updated_at: int


class SyncAnswer(Closed):
    """Page on with `next_since_committed_id` and `sync_to_committed_id` until `has_more` is false."""

    partitions: Annotated[list[str] | None, Field(description="What was asked for; null is the whole project.")]
    events: list[CommittedEvent]
    next_since_committed_id: Position
    sync_to_committed_id: Annotated[
        Position, Field(description="The head when the cycle began; the same on all its pages.")
    ]
    has_more: bool
    pruned_through_committed_id: Annotated[
        Position | None,
        Field(description="The last pruned event of these partitions that the page lacks; absent when none."),
    ] = None


class Problem(Closed):
    """Every error: `details.field` names the place."""

    code: Literal[
        "bad_request", "auth_failed", "forbidden", "not_found", "conflict", "too_large", "rate_limited", "server_error"
    ]
    message: str
    details: dict[str, Any]


class Health(Closed):
    status: Literal["ok"]
    version: str
    websocket_url: Annotated[str, Field(description="Where the hub's WebSocket is.")]


MODELS: tuple[type[BaseModel], ...] = (SubmitRequest, SubmitAnswer, SyncRequest, SyncAnswer, Problem, Health)
