"""The bodies of the break-glass routes as models: grants, the raw values they kept, and their audit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from infra.openapi.models import Closed
from infra.openapi.streams_models import Milliseconds, SeqNo, Sparse, text
from millrace.streams.domain.grant import MAX_REASON_BYTES, MAX_SCOPE, MAX_TTL_S, MIN_TTL_S

Names = Annotated[list[Annotated[str, text("A name.")]], Field(min_length=1, max_length=MAX_SCOPE)]


class ScopeRequest(Sparse):
    """What is left out is not narrowed."""

    streams: Annotated[Names | None, Field(description="The streams whose events are kept raw.")] = None
    fields: Annotated[Names | None, Field(description="The sensitive fields, in any spelling.")] = None


class GrantRequest(Sparse):
    reason: Annotated[str, text("Why the glass is broken; it is audited.", MAX_REASON_BYTES)]
    ttl_s: Annotated[int, Field(ge=MIN_TTL_S, le=MAX_TTL_S, description="How long, in seconds.")]
    scope: Annotated[ScopeRequest | None, Field(description="Left out: every stream and sensitive field.")] = None


class GrantScope(Closed):
    """Null means all of them."""

    streams: list[str] | None
    fields: list[str] | None


class BreakGlassGrant(Closed):
    grant_id: str
    runtime_id: str
    who: Annotated[str, Field(description="The `client_id` of the token that made it.")]
    reason: str
    scope: GrantScope
    created_ts_ms: Milliseconds
    expires_ts_ms: Milliseconds
    status: Literal["active", "expired", "revoked"]


class GrantList(Closed):
    grants: list[BreakGlassGrant]


class RawValue(Closed):
    path: Annotated[str, Field(description="Where in the event, such as `payload.peer_id`.")]
    value: JsonValue


class DiagnosticsEntry(Closed):
    """The raw sensitive values of one event. Secret values are never kept."""

    stream_id: str
    event_id: str
    seq_no: SeqNo
    ts_ms: Milliseconds
    values: list[RawValue]


class DiagnosticsPage(Closed):
    """Go on with `next_after` until it is null."""

    grant: BreakGlassGrant
    entries: list[DiagnosticsEntry]
    next_after: str | None


class AuditEvent(BaseModel):
    """What an operator did, a negotiation, a policy, or a use of a grant; further members depend on `action`."""

    model_config = ConfigDict(extra="allow")

    position: Annotated[int, Field(ge=1, description="Its place in the tenant's audit, without gaps from 1.")]
    ts_ms: Milliseconds
    who: str
    action: str
    runtime_id: Annotated[str | None, Field(description="Left out where all runtimes are meant.")] = None
    grant_id: Annotated[str | None, Field(description="Of grants and what was read under them.")] = None
    outcome: Annotated[
        Literal["begun", "done", "refused", "failed"] | None,
        Field(description="Of what operators do: recorded before it is done, and again when it has ended."),
    ] = None
    action_id: Annotated[str | None, Field(description="Both entries of one action have the same.")] = None
    code: Annotated[str | None, Field(description="Why it was refused or has failed.")] = None
    target_id: Annotated[str | None, Field(description="Of what was done to a target.")] = None


class AuditPage(Closed):
    """A page may be short, even empty: go on with `next_after` until it stays the same, or `next_before` until 0."""

    events: list[AuditEvent]
    next_after: Annotated[int | None, Field(ge=0, description="With the order `oldest`.")] = None
    next_before: Annotated[int | None, Field(ge=0, description="With the order `newest`; 0 at the beginning.")] = None


MODELS: tuple[type[BaseModel], ...] = (GrantRequest, BreakGlassGrant, GrantList, DiagnosticsPage, AuditPage)
