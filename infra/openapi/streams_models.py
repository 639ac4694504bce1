"""The bodies of the streams contract's routes as models: what streams/domain/ checks and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from infra.limits import TEXTS
from infra.openapi.models import Closed
from millrace.ledger.domain.naming import MAX_NAME_BYTES, NOT_BLANK
from millrace.runtime.requests import MAX_BATCH
from millrace.streams.domain.envelope import EVENT_TYPES, EXTENSION_KEY, MAX_TEXT_BYTES, MAX_TS_MS
from millrace.streams.domain.errors import catalogue
from millrace.streams.domain.negotiate import CAPABILITIES, CONTRACT_RELEASE, CONTRACT_VERSION, MAX_LISTED, NAMESPACE

SENSITIVE = "Sensitive: stored as the privacy policy transforms it."


def text(meaning: str, max_bytes: int = MAX_TEXT_BYTES) -> Any:
    return Field(
        min_length=1,
        max_length=max_bytes,
        pattern=NOT_BLANK,
        description=f"{meaning} At most {max_bytes} bytes of UTF-8.",
    )


def name(meaning: str) -> Any:
    return text(meaning, MAX_NAME_BYTES)


Milliseconds = Annotated[int, Field(ge=0, le=MAX_TS_MS, description="In ms since 1970.", examples=[1_771_236_000_000])]
SeqNo = Annotated[int, Field(ge=1, description="Its place in the stream, without gaps from 1.")]
Severity = Literal["debug", "info", "warn", "error", "critical"]
StoredExtensions = Annotated[dict[str, JsonValue], Field(description="At most `max_extension_keys` keys.")]
Extensions = Annotated[
    dict[str, JsonValue],
    Field(
        description=f"At most `max_extension_keys` keys, each of the form `{EXTENSION_KEY}`.",
        json_schema_extra={"propertyNames": {"pattern": f"^{EXTENSION_KEY}$"}},
    ),
]


def _left_out(schema: dict[str, Any]) -> None:
    for rule in schema["properties"].values():
        match rule:
            case {"anyOf": [schema_if_given, {"type": "null"}], "default": None}:
                del rule["anyOf"], rule["default"]
                rule.update(schema_if_given | rule)


class Sparse(Closed):
    """A member with the default None may be left out; if it is there, it is not null."""

    model_config = ConfigDict(json_schema_extra=_left_out)


class SdkFailure(Closed):
    """Every error of this contract; `details` says more, such as the `field` that is wrong."""

    machine_code: Annotated[str, Field(json_schema_extra={"enum": [kind.code for kind in catalogue()]})]
    category: Annotated[str, Field(json_schema_extra={"enum": sorted({kind.category() for kind in catalogue()})})]
    retryable: Annotated[bool, Field(description="Whether the same request may succeed later.")]
    is_user_actionable: Annotated[bool, Field(description="Whether the caller can do something about it.")]
    message: str
    details: dict[str, Any]


class LimitOverrides(Closed):
    """What is left out, or null, is the profile's."""

    max_poll_events: Annotated[int, Field(ge=1, le=10_000)] | None = None
    max_event_bytes: Annotated[int, Field(ge=256, le=65_536)] | None = None
    max_batch_bytes: Annotated[
        Annotated[int, Field(ge=256, le=1_048_576)] | None, Field(description="At least `max_event_bytes`.")
    ] = None
    max_extension_keys: Annotated[int, Field(ge=0, le=32)] | None = None


class NegotiateRequest(Closed):
    supported_contract_versions: Annotated[
        list[int],
        Field(min_length=1, max_length=MAX_LISTED, description=f"This hub speaks {CONTRACT_VERSION}."),
    ]
    requested_capabilities: Annotated[
        Annotated[list[str], Field(max_length=MAX_LISTED)] | None,
        Field(description=f"Unknown ones are dropped; known: {', '.join(f'`{one}`' for one in sorted(CAPABILITIES))}."),
    ] = None
    profile: Literal["desktop-full", "desktop-local-runtime", "embedded-alloc"] | None = "desktop-full"
    limits: LimitOverrides | None = None


class EffectiveLimits(Closed):
    """What holds for this client with this runtime until it negotiates again."""

    max_poll_events: int
    max_event_bytes: Annotated[int, Field(description="Of an event's `payload` as compact JSON in UTF-8.")]
    max_batch_bytes: Annotated[int, Field(description="Of all events of one poll.")]
    max_extension_keys: int


class NegotiateAnswer(Closed):
    runtime_id: str
    active_contract_version: Annotated[int, Field(json_schema_extra={"const": CONTRACT_VERSION})]
    effective_capabilities: list[str]
    effective_limits: EffectiveLimits
    contract_release: Annotated[str, Field(json_schema_extra={"const": CONTRACT_RELEASE})]
    schema_namespace: Annotated[str, Field(json_schema_extra={"const": NAMESPACE})]


class StreamEventContent(Closed):
    """What an event says, on the way in and out."""

    event_id: Annotated[str, text("Yours, but not `gap-N`. The same id again in its stream is the same event.")]
    contract_version: Annotated[int, Field(description="The negotiated one.", examples=[CONTRACT_VERSION])]
    ts_ms: Milliseconds
    event_type: Annotated[
        str, text(f"{', '.join(f'`{one}`' for one in EVENT_TYPES)}, or lower case like `vendor.domain.event_name`.")
    ]
    severity: Severity
    source_component: Annotated[str, text("The part of the runtime that speaks.")]
    payload: Annotated[
        dict[str, JsonValue],
        Field(description="The event's own fields, at most `max_event_bytes`; secrets are dropped."),
    ]
    operation_id: Annotated[str | None, text("The operation it belongs to.")] = None
    message_id: Annotated[str | None, text("The message it is about; a `DeliveryStateTransition` needs it.")] = None
    peer_id: Annotated[str | None, text(SENSITIVE)] = None
    correlation_id: Annotated[str | None, text(SENSITIVE)] = None
    trace_id: Annotated[str | None, text(SENSITIVE)] = None
    extensions: StoredExtensions | None = None


class StreamDraft(StreamEventContent):
    """An event to emit, with no other members. An optional one that is null counts as left out."""

    extensions: Extensions | None = None
    seq_no: Annotated[None, Field(description="The hub's to give: a number is refused.")] = None
    runtime_id: Annotated[str | None, name("If given, that of the path.")] = None
    stream_id: Annotated[str | None, name("If given, that of the path.")] = None


class StreamBatch(Closed):
    __doc__ = f"At most {TEXTS['http-body']}; one event at most {TEXTS['stream-event']}."

    events: Annotated[list[StreamDraft], Field(min_length=1, max_length=MAX_BATCH)]


class StreamEvent(StreamEventContent, Sparse):
    """An event as it was stored: without secrets, sensitive fields transformed."""

    event_id: Annotated[str, Field(description="Its sender's; `gap-N` is the hub's own.")]
    runtime_id: str
    stream_id: str
    seq_no: SeqNo


class Emitted(Closed):
    event_id: str
    seq_no: SeqNo
    deduped: Annotated[bool, Field(description="Whether it was stored before; then nothing was written.")]


class EmitFailure(SdkFailure, Sparse):
    """An event of a batch that was refused."""

    event_id: Annotated[str | None, Field(description="Left out if the event has none that can be used.")] = None


class EmittedBatch(Closed):
    """One result per event, in the order of the request; one that is refused undoes no other."""

    results: list[Emitted | EmitFailure]


class PollAnswer(Closed):
    events: Annotated[list[StreamEvent], Field(description="In the order of `seq_no`.")]
    next_cursor: Annotated[str, Field(description="Poll with it for what comes after; opaque.")]
    dropped_count: Annotated[
        int, Field(ge=0, description="Events that were pruned before this subscription began; 0 with a cursor.")
    ]


MODELS: tuple[type[BaseModel], ...] = (
    SdkFailure,
    NegotiateRequest,
    NegotiateAnswer,
    StreamDraft,
    StreamBatch,
    Emitted,
    EmittedBatch,
    PollAnswer,
)
