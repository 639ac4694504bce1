"""The payload models of realtime events (R2): one for each type, or for two types that say the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from millrace.realtime.doors.fields import Count, DateTime, Figure, Number, Text, said


class Payload(BaseModel):
    """Checks a payload, keeps nothing of it. Fields the model does not name are allowed: v1.x grows by addition."""

    model_config = ConfigDict(strict=True, extra="allow", alias_generator=to_camel, defer_build=True)

    @classmethod
    def problems(cls, payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Every (field, message) that is wrong; the field is empty when several are wrong together."""
        try:
            cls.model_validate(payload)
        except ValidationError as error:
            for one in error.errors(include_url=False):
                yield str(one["loc"][0]), said(one)


class CallStarted(Payload):
    """A call begins."""

    call_id: Text
    channel: Literal["voice", "video"]
    direction: Literal["inbound", "outbound"]
    provider: Text


class CallConnecting(Payload):
    """A call is being set up."""

    call_id: Text


class CallConnected(Payload):
    """Both sides hear each other."""

    call_id: Text
    connected_at: DateTime


class CallReconnecting(Payload):
    """A call lost its line and tries again."""

    call_id: Text
    attempt: Count
    at: DateTime


class CallEnded(Payload):
    """A call is over."""

    call_id: Text
    ended_at: DateTime
    duration_seconds: Count
    end_reason: Literal["completed", "user_hangup", "timeout", "agent_handover"]


class CallError(Payload):
    """Something went wrong; the call may go on."""

    code: Text
    message: Text
    retryable: bool


class CallTerminalFailure(Payload):
    """A call failed for good."""

    call_id: Text
    failed_at: DateTime
    code: Text
    message: Text


class CallTurnOwnerChanged(Payload):
    """The other side speaks now."""

    call_id: Text
    turn_id: Text
    owner: Literal["user", "agent"]


class CallTurnTiming(Payload):
    """How long the parts of a turn took."""

    call_id: Text
    turn_id: Text
    capture_to_backend_ms: Count
    orchestrator_ms: Count
    playback_start_ms: Count
    total_ms: Count
    slo_breached: bool


class TranscriptPartial(Payload):
    """What an utterance seems to say so far."""

    utterance_id: Text
    speaker: Literal["user", "agent", "unknown"]
    text: Text
    start_ms: Count
    end_ms: Count


class TranscriptFinal(Payload):
    """What an utterance said; it takes the place of every partial."""

    utterance_id: Text
    speaker: Literal["user", "agent"]
    text: Text
    start_ms: Count
    end_ms: Count


class ActionProposed(Payload):
    """An action is wanted."""

    action_id: Text
    action_type: Text
    summary: Text


class ActionRequiresConfirmation(Payload):
    """An action waits for a yes."""

    action_id: Text
    reason: Text
    confirmation_token: Text


class ActionExecuted(Payload):
    """An action was done."""

    action_id: Text
    duration_ms: Count


class ActionFailed(Payload):
    """An action was not done."""

    action_id: Text
    code: Text
    message: Text
    retryable: bool


class SafetyBlocked(Payload):
    """A policy stopped something."""

    policy_id: Text
    reason: Text
    decision: Text


class SafetyApproved(Payload):
    """A policy let something pass."""

    policy_id: Text
    decision: Text


class Usage(Payload):
    """What a meter counted: `billableSeconds`, or `quantity` with its `unit`. One that is sent must be right."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["billableSeconds"]}, {"required": ["quantity", "unit"]}]}
    )

    meter_id: Text
    billable_seconds: Count = Field(default_factory=int)
    quantity: Count = Field(default_factory=int)
    unit: Literal["seconds", "count"] = Field(default_factory=lambda: "count")

    @classmethod
    def problems(cls, payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield from super().problems(payload)
        if "billableSeconds" not in payload and not {"quantity", "unit"} <= payload.keys():
            yield "", "needs billableSeconds, or quantity with unit"


class BillingAdjustmentCreated(Payload):
    """A bill was corrected; a negative amount is a credit."""

    adjustment_id: Text
    meter_id: Text
    amount: Number
    currency: Text


class UsageWarning(Payload):
    """A meter nears a limit."""

    meter_id: Text
    threshold_type: Literal["seconds", "cost"]
    threshold_value: Figure
    current_value: Figure
    message: Text


class UsageStopped(Payload):
    """A meter counts no more."""

    meter_id: Text
    final_billable_seconds: Count
    reason: Literal["budget_exceeded", "policy_limit", "manual_stop"]
