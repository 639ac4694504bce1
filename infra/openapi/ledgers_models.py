"""The answers of the operators' doors to ledgers and events as models."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, JsonValue

from infra.openapi.models import Closed
from infra.openapi.streams_models import Milliseconds

Position = Annotated[int, Field(ge=0)]
Scope = Annotated[str, Field(description="A project, session, domain or team; of a stream `runtime_id:stream_id`.")]


class ReaderStand(Closed):
    position: Position
    lag_events: Annotated[int, Field(ge=0)]
    lag_seconds: Annotated[float, Field(ge=0, description="The age of the first event that it has not read.")]


class TargetStand(ReaderStand):
    target_id: str


class StageStands(Closed):
    index: Annotated[ReaderStand | None, Field(description="Only of projects.")] = None
    fan_out: ReaderStand
    archive: ReaderStand


class LedgerStand(Closed):
    contract: str
    scope: Scope
    head: Annotated[int, Field(ge=0, description="The newest position.")]
    floor: Annotated[int, Field(ge=1, description="The oldest retained position.")]
    events: Annotated[int, Field(ge=0, description="How many positions are retained.")]
    last_commit_ms: Milliseconds | None
    stages: StageStands
    targets: list[TargetStand]


class LedgerPage(Closed):
    """A page may be short: go on with `after=<next>` until `next` is null."""

    ledgers: list[LedgerStand]
    next: str | None


class Committer(Closed):
    client_id: str
    traceparent: Annotated[str | None, Field(description="Of the call, if its caller sent one.")] = None


class LedgerEvent(Closed):
    position: Position
    id: str
    committed_ms: Milliseconds
    type: Annotated[str | None, Field(description="Null of an event that was pruned.")]
    partitions: list[str]
    by: Committer
    pruned: Annotated[bool, Field(description="Its content is gone; id, partitions and time stay.")]
    bytes: Annotated[int | None, Field(ge=0, description="Stored. Left out of a pruned event.")] = None
    content: Annotated[JsonValue, Field(description="As stored, after the privacy rules. Left out if pruned.")] = None


class EventPage(Closed):
    """`next_after` says how far was looked: go on with it until it equals `head`."""

    events: list[LedgerEvent]
    next_after: Position
    head: Position
    floor: Annotated[int, Field(ge=1)]


class EventDelivery(Closed):
    target_id: str
    event_id: Annotated[str, Field(description="By which the target knows it, as in its deliveries.")]
    state: Annotated[
        str, Field(description="`delivered`, a state of a delivery that is not done, `waiting`, or `not_sent`.")
    ]
    attempts: Annotated[int, Field(ge=0)]
    first_ms: Milliseconds | None
    last_ms: Milliseconds | None
    next_ms: Milliseconds | None
    error: str | None
    delivered_before_ms: Annotated[
        Milliseconds | None, Field(description="When it was delivered before it was replayed.")
    ]


class FoundEvent(Closed):
    event: LedgerEvent
    deliveries: list[EventDelivery]


MODELS: tuple[type[BaseModel], ...] = (LedgerPage, LedgerStand, EventPage, FoundEvent)
