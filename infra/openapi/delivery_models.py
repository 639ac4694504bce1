"""The bodies of the delivery routes as models: batches, targets, deliveries and status."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from infra.openapi.models import Closed, Problem
from millrace.delivery.domain.bulk import MOST_MS, MOST_PREFIXES
from millrace.delivery.domain.events import MOST_ID_BYTES
from millrace.delivery.domain.hub_targets import LEAST_RATE, MOST_FAMILIES, MOST_RATE
from millrace.delivery.domain.inbox import MOST_EVENT_BYTES
from millrace.delivery.domain.replay import MOST_POSITION
from millrace.delivery.domain.sources import MOST_PATTERN_BYTES, MOST_SOURCES
from millrace.delivery.domain.states import MOST_HISTORY
from millrace.delivery.domain.targets import MOST_EVENTS
from millrace.delivery.receivers.registry import RECEIVERS

KINDS = tuple(RECEIVERS.values())
WITH_URL = ", ".join(kind.name for kind in KINDS if kind.needs_url)
WEBHOOKS = ", ".join(kind.name for kind in KINDS if kind.takes_webhook)
AUTH = "; ".join(f"of type {kind.name}, {kind.auth}" for kind in KINDS if kind.auth)

TargetType = Annotated[str, Field(json_schema_extra={"enum": [kind.name for kind in KINDS]})]
Milliseconds = Annotated[int, Field(description="Milliseconds since 1970.")]
Status = Literal["success", "duplicate", "pending", "rejected", "transient", "terminal_failed"]
Name = Annotated[str, Field(min_length=1, max_length=MOST_ID_BYTES, pattern=r"\S")]


class BatchEvent(BaseModel):
    """Any JSON object with these two; it is kept and delivered as it is."""

    model_config = ConfigDict(extra="allow")

    event_id: Annotated[Name, Field(description="Yours. The same id again is the same event.")]
    event_type: Name


class BatchRequest(BaseModel):
    events: Annotated[
        list[BatchEvent],
        Field(min_length=1, max_length=MOST_EVENTS, description=f"Each at most {MOST_EVENT_BYTES} bytes."),
    ]


class BatchResult(Closed):
    event_id: Annotated[str | None, Field(description="Null if the event had none that can be answered.")]
    index: Annotated[int | None, Field(description="The event's place in the batch, if it has no id.")] = None
    status: Literal["success", "duplicate", "rejected"]
    error: str | None = None


class BatchAnswer(Closed):
    """One result per event, keyed by its id."""

    results: list[BatchResult]


class EventReason(Closed):
    event_id: Annotated[str | None, Field(description="Null if the event had none that can be answered.")]
    index: Annotated[int | None, Field(description="The event's place in the batch, if it has no id.")] = None
    reason: str


class BatchProblem(Problem):
    """An error of the batch door: `error` is the `message` again."""

    error: str


class BatchRefused(Closed):
    """Nothing of the batch was kept."""

    error: str
    code: Literal["bad_request"]
    message: str
    details: Annotated[list[EventReason], Field(description="Empty if the request itself is wrong.")]
    results: list[BatchResult] | None = None
    problem: Annotated[dict[str, Any], Field(description="`field` names the place.")]


class SourceModel(Closed):
    contract: Literal["sync", "realtime", "streams", "catalog", "delivery"]
    scope: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MOST_PATTERN_BYTES,
            description="A project, session, `runtime/stream`, domain or team; or a prefix ending in `*`.",
        ),
    ]


class TargetRequest(Closed):
    type: TargetType
    sources: Annotated[list[SourceModel], Field(min_length=1, max_length=MOST_SOURCES)]
    url: Annotated[
        str, Field(description=f"Where to; https, and a public address. Needed by these types: {WITH_URL}.")
    ] = ""
    mode: Annotated[
        Literal["batch", "webhook"],
        Field(description=f"Many events a request, or one. These types can be webhooks: {WEBHOOKS}."),
    ] = "batch"
    auth_secret: Annotated[str, Field(description=f"Of a target {AUTH}. Never told again.")] = ""
    signing_secret: Annotated[
        str | None,
        Field(
            description="`whsec_` and base64. A new one signs at once; the old one goes on beside it for 24 hours. "
            "Empty, or never given: requests are not signed."
        ),
    ] = None
    families: Annotated[
        tuple[str, ...],
        Field(max_length=MOST_FAMILIES, description="Prefixes of the event types it wants; none: all."),
    ] = ()
    start: Annotated[
        Literal["retained", "now"], Field(description="In a ledger that is new to it: with what is retained, or now.")
    ] = "retained"
    paused: bool = False
    max_per_second: Annotated[
        float | None,
        Field(ge=LEAST_RATE, le=MOST_RATE, description="Events that it is sent in a second, at most; null: no limit."),
    ] = None


class TargetPatch(Closed):
    """One or more fields of a target."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    type: TargetType | None = None
    sources: Annotated[list[SourceModel] | None, Field(min_length=1, max_length=MOST_SOURCES)] = None
    url: str | None = None
    mode: Literal["batch", "webhook"] | None = None
    auth_secret: str | None = None
    signing_secret: str | None = None
    families: Annotated[list[str] | None, Field(max_length=MOST_FAMILIES)] = None
    start: Literal["retained", "now"] | None = None
    paused: bool | None = None
    max_per_second: Annotated[float | None, Field(ge=LEAST_RATE, le=MOST_RATE)] = None


class TargetModel(Closed):
    """A target, without its secrets, and how it fares."""

    target_id: str
    type: TargetType
    url: str | None
    mode: Literal["batch", "webhook"]
    sources: list[SourceModel]
    families: list[str]
    start: Literal["retained", "now"]
    journal_ids: Annotated[
        Literal["plain", "scoped"],
        Field(description="Scoped if it may get several teams' journals: `delivery:team:id` instead of `id`."),
    ]
    paused: bool
    max_per_second: float | None
    paused_why: str | None
    has_auth_secret: bool
    signing_secrets: Annotated[int, Field(description="How many sign at present.")]
    unsigned: Annotated[bool, Field(description="Its requests could be signed, but it has no secret.")]
    revision: int
    created_ms: Milliseconds
    failures_in_a_row: int
    open_until_ms: Annotated[int | None, Field(description="Left alone until then, after failures in a row.")]
    blocked: Annotated[str | None, Field(description="Why the last drain could not send.")]
    blocked_detail: str | None


class OpenCounts(Closed):
    pending: int
    rejected: int
    transient: int
    terminal_failed: int


class ListedTarget(TargetModel):
    """With `counts=true` also how many of its deliveries are not done."""

    deliveries: OpenCounts | None = None
    counts_complete: Annotated[
        bool | None, Field(description="False: there are more than could be counted at once.")
    ] = None


class TargetList(Closed):
    targets: list[ListedTarget]


class TargetDeleted(Closed):
    deleted: Annotated[bool, Field(description="False if there was none.")]


class DrainAsked(Closed):
    asked: Literal[True]


class DeliveryModel(Closed):
    event_id: Annotated[str, Field(description="As the target knows it.")]
    event_type: Annotated[str | None, Field(description="Null if the event's body is pruned.")]
    contract: str
    scope: str
    position: int
    status: Status
    attempts: int
    first_ms: Milliseconds
    last_ms: Milliseconds
    next_ms: Annotated[int | None, Field(description="Not tried again before; null: not by itself.")]
    error: str | None
    delivered_before_ms: Annotated[
        Milliseconds | None, Field(description="When it was delivered before it was replayed; null: it was not.")
    ]


class DeliveryPage(Closed):
    """Go on with `next_after` until it is null; a page may be short before that."""

    deliveries: list[DeliveryModel]
    next_after: str | None


class Retried(Closed):
    event_id: str
    target_id: str
    retried: Literal[True]


class AttemptModel(Closed):
    at_ms: Milliseconds
    status: Status
    answer: Annotated[int | None, Field(description="The HTTP status, if the request was refused as a whole.")]
    error: str | None


class AttemptsModel(DeliveryModel):
    """One delivery with its last attempts, the oldest first."""

    target_id: str
    history: Annotated[list[AttemptModel], Field(max_length=MOST_HISTORY)]


class RetryManyRequest(Closed):
    status: Literal["terminal_failed", "rejected", "pending", "transient"]
    families: Annotated[list[str] | None, Field(max_length=MOST_PREFIXES, description="Prefixes of event types.")] = (
        None
    )
    since_ms: Annotated[int | None, Field(ge=0, le=MOST_MS, description="Last tried then or later.")] = None
    until_ms: Annotated[int | None, Field(ge=0, le=MOST_MS, description="Last tried then or earlier.")] = None
    dry_run: bool | None = None
    after: Annotated[str | None, Field(description="The `next` of the answer before.")] = None


class RetriedMany(Closed):
    target_id: str
    matched: int
    retried: Annotated[int, Field(description="Fewer than matched if some changed at the same time.")]
    dry_run: bool
    next: Annotated[str | None, Field(description="Where the next request goes on; null at the end.")]


class DueLedger(Closed):
    contract: str
    scope: str


class DrainModel(Closed):
    """The drain that serves a target. It renews its lease every few seconds until it is done."""

    holder: Annotated[str, Field(description="An id of this drain alone.")]
    since_ms: int
    until_ms: Annotated[int, Field(description="When its lease ends unless it is renewed.")]


class TargetStatus(TargetModel):
    delivered_count: int
    deliveries: OpenCounts
    has_due: Annotated[bool, Field(description="Whether a visit is due now, or a drain is at work or has died.")]
    due: Annotated[list[DueLedger], Field(description="Some of the ledgers for which a visit is due.")]
    drain: Annotated[DrainModel | None, Field(description="Who drains the target, since when.")]
    stuck: Annotated[
        Literal["drain_died"] | None,
        Field(description="`drain_died`: a drain ended without giving its lease back; another goes on in seconds."),
    ]
    waits_since_ms: Annotated[
        int | None, Field(description="Since when it waits for its turn among the tenant's drains.")
    ]
    quick: Annotated[bool, Field(description="Whether it answered every request of its last drain within 2 s.")]


class QueueCounts(Closed):
    """Of a client; a hub has no such queue."""

    path: str | None
    event_count: int
    body_upload_count: int


class Authority(Closed):
    """Of a client; a hub tells who asks."""

    configured_server_url: str | None
    env_server_url: str | None
    override_mode: str
    resolved_server_url: str | None
    user_id: str | None
    team_slug: str | None
    derived_queue_scope: str | None
    queue_db_path: str | None
    active_queue_scope_status: str
    error: str | None


class DrainBlocked(Closed):
    target: str
    reason: str
    detail: str
    since_ms: Milliseconds


class JournalStatus(Closed):
    """The journal of the token's team."""

    captured_event_count: int
    retained_event_count: int
    drain_blocked: list[DrainBlocked]
    suggestion: str | None


class LedgerStatus(Closed):
    retained_event_count: int
    current_target_delivered_count: int
    previous_target_delivered_count: Annotated[int, Field(description="By targets that were deleted.")]
    terminal_failed_count: int
    by_status: OpenCounts


class MigrationConflicts(Closed):
    """Of a client."""

    open_count: int
    conflicts: list[JsonValue]


class BodyUploads(Closed):
    """Of a client."""

    body_upload_count: int
    body_upload_failure_count: int


class TerminalFailure(DeliveryModel):
    target_id: str


class TerminalFailures(Closed):
    count: int
    failures: Annotated[list[TerminalFailure], Field(description="The first of them.")]


class RangeReplayRequest(Closed):
    contract: str
    scope: Annotated[str, Field(min_length=1, description="One ledger that the target's sources name.")]
    from_position: Annotated[int, Field(ge=1, le=MOST_POSITION)]
    to_position: Annotated[int, Field(ge=1, le=MOST_POSITION, description="Included; what is new is sent anyway.")]
    until_ms: Annotated[
        int | None, Field(ge=0, le=MOST_MS, description="Only what was last tried at this time or before.")
    ] = None
    dry_run: bool | None = None


class ReplayedRange(Closed):
    target_id: str
    contract: str
    scope: str
    matched: Annotated[int, Field(ge=0)]
    replayed: Annotated[int, Field(ge=0, description="Less than `matched` if some changed at the same time.")]
    delivered_before: Annotated[int, Field(ge=0, description="How many of those that matched the target had.")]
    dry_run: bool
    next: Annotated[int | None, Field(description="The `from_position` of the next request; null at the end.")]


class DeliveryStatusModel(Closed):
    ok: Annotated[bool, Field(description="Nothing is given up, paused or blocked.")]
    exit_code: Literal[0, 1]
    auth_required: bool
    auth_present: bool
    active_queue: QueueCounts
    legacy_queue: QueueCounts
    target_authority: Authority
    event_journal: JournalStatus
    migration_conflicts: MigrationConflicts
    body_upload_compatibility: BodyUploads
    delivery_targets: list[TargetStatus]
    unreadable_targets: Annotated[
        list[str],
        Field(description="Ids of targets whose stored row cannot be read; delete them and put them again."),
    ]
    delivery_ledger: LedgerStatus
    terminal_failures: TerminalFailures


MODELS: tuple[type[BaseModel], ...] = (
    BatchRequest,
    BatchAnswer,
    BatchProblem,
    BatchRefused,
    TargetRequest,
    TargetModel,
    TargetList,
    TargetDeleted,
    DrainAsked,
    DeliveryPage,
    Retried,
    AttemptsModel,
    RetryManyRequest,
    RetriedMany,
    RangeReplayRequest,
    ReplayedRange,
    DeliveryStatusModel,
)
