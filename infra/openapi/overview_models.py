"""How the hub stands, as models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from infra.openapi.ledgers_models import Position, Scope
from infra.openapi.models import Closed
from infra.openapi.streams_models import Milliseconds, NegotiateAnswer

Count = Annotated[int, Field(ge=0)]


class StageLag(Closed):
    events_read: Annotated[int, Field(ge=0, description="The positions of the readers, added up.")]
    gaps: Annotated[int, Field(ge=0, description="Ledgers in which the next event of a reader was pruned.")]
    worst_lag_seconds: Annotated[float, Field(ge=0, description="The age of the oldest event that was not read.")]
    lag_events: Count
    ledgers_behind: Count


class StageLags(Closed):
    fan_out: StageLag
    index: StageLag
    archive: StageLag
    targets: StageLag


class MinuteCount(Closed):
    minute_ms: Milliseconds
    events: Count


class EventsPerMinute(Closed):
    """The minutes of the last hour that had an event. `truncated`: there may have been more."""

    minutes: list[MinuteCount]
    by_contract: Annotated[dict[str, list[MinuteCount]], Field(description="The same for each contract that had one.")]
    truncated: bool


class TargetStands(Closed):
    well: Count
    paused: Count
    blocked: Count


class HubProblem(Closed):
    severity: Literal["warning", "error"]
    what: Annotated[str, Field(description="In plain words.")]
    where: Annotated[str, Field(description="`contract/scope`, or `targets/` and an id.")]
    help: Annotated[str, Field(description="A command to begin with.")]


class HubOverview(Closed):
    """If `more` is true, not everything was looked at, and the numbers are lower bounds."""

    looked_at: Annotated[int, Field(ge=0, description="Ledgers.")]
    more: bool
    stages: StageLags
    events_per_minute: EventsPerMinute
    targets: TargetStands
    connections: Count
    subscriptions: Count
    degraded: Annotated[int, Field(ge=0, description="Subscriptions that lost history.")]
    problems: list[HubProblem]


class SubscriptionPlace(Closed):
    subscription_id: str
    contract: str
    scope: Scope


class OpenConnection(Closed):
    connection: str
    client_id: str
    project: str
    subscriptions: list[SubscriptionPlace]


class ConnectionPage(Closed):
    """A page may be short: go on with `after=<next>` until `next` is null."""

    connections: list[OpenConnection]
    next: str | None


class DegradedSubscription(Closed):
    stream_id: str
    subscription: str
    floor: Annotated[int, Field(ge=1, description="The oldest retained position.")]


class StreamGap(Closed):
    """A stream whose first events were pruned: a cursor below `floor` meets a gap."""

    stream_id: str
    floor: Annotated[int, Field(ge=2)]
    head: Position


class DegradedPage(Closed):
    degraded: list[DegradedSubscription]
    gaps: list[StreamGap]
    next: str | None


class ClientNegotiation(NegotiateAnswer):
    client_id: str
    profile: str


class NegotiationPage(Closed):
    negotiations: list[ClientNegotiation]
    next: str | None


MODELS: tuple[type[BaseModel], ...] = (HubOverview, ConnectionPage, DegradedPage, NegotiationPage)
