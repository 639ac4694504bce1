"""The types of realtime events (R2), one class each: its name, what it means and the fields of its payload.

A new type is a new class here and `make generated`; the registry, the schemas and the pages are made from this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from millrace.realtime.doors.fields import Count, DateTime, Figure, Number, Text
from millrace.realtime.doors.payload import Payload

NOT_NULL: JsonDict = {"not": {"type": "null"}}


class CallStarted(Payload, of="call.started"):
    """A call begins."""

    call_id: Text
    channel: Literal["voice", "video"]
    direction: Literal["inbound", "outbound"]
    provider: Text


class CallConnecting(Payload, of="call.connecting"):
    """A call is being set up."""

    call_id: Text


class CallConnected(Payload, of="call.connected"):
    """Both sides hear each other."""

    call_id: Text
    connected_at: DateTime


class CallReconnecting(Payload, of="call.reconnecting"):
    """A call lost its line and tries again."""

    call_id: Text
    attempt: Count
    at: DateTime


class CallEnded(Payload, of="call.ended"):
    """A call is over."""

    call_id: Text
    ended_at: DateTime
    duration_seconds: Count
    end_reason: Literal["completed", "user_hangup", "timeout", "agent_handover"]


class CallError(Payload, of="call.error"):
    """Something went wrong; the call may go on."""

    code: Text
    message: Text
    retryable: bool


class CallTerminalFailure(Payload, of="call.terminal_failure"):
    """A call failed for good."""

    call_id: Text
    failed_at: DateTime
    code: Text
    message: Text


class CallVoiceConfigUpdated(Payload, of="call.voice.config.updated"):
    """A call speaks with another voice from now on."""

    call_id: Text
    persona: Literal["antonio", "mariana", "both"]
    voice_profile_id: Text
    label: Text
    synthesis_allowed: bool


class CallTurnOwnerChanged(Payload, of="call.turn.owner_changed"):
    """The other side speaks now."""

    call_id: Text
    turn_id: Text
    owner: Literal["user", "agent"]


class CallTurnTiming(Payload, of="call.turn.timing"):
    """How long the parts of a turn took."""

    call_id: Text
    turn_id: Text
    capture_to_backend_ms: Count
    orchestrator_ms: Count
    playback_start_ms: Count
    total_ms: Count
    slo_breached: bool


class TranscriptPartial(Payload, of="transcript.partial"):
    """What an utterance seems to say so far."""

    utterance_id: Text
    speaker: Literal["user", "agent", "unknown"]
    text: Text
    start_ms: Count
    end_ms: Count


class TranscriptFinal(Payload, of="transcript.final"):
    """What an utterance said; it takes the place of every partial."""

    utterance_id: Text
    speaker: Literal["user", "agent"]
    text: Text
    start_ms: Count
    end_ms: Count


class ActionRequested(Payload, of="orchestration.action.requested"):
    """An action is wanted."""

    action_id: Text
    action_type: Text
    summary: Text


class ActionProposed(ActionRequested, of="action.proposed"):
    """An action is wanted."""


class ActionRequiresConfirmation(Payload, of="action.requires_confirmation"):
    """An action waits for a yes."""

    action_id: Text
    reason: Text
    confirmation_token: Text


class ActionExecuted(Payload, of="action.executed"):
    """An action was done."""

    action_id: Text
    duration_ms: Count


class ActionFailed(Payload, of="action.failed"):
    """An action was not done."""

    action_id: Text
    code: Text
    message: Text
    retryable: bool


class SafetyBlocked(Payload, of="safety.blocked"):
    """A policy stopped something."""

    policy_id: Text
    reason: Text
    decision: Text


class SafetyApproved(Payload, of="safety.approved"):
    """A policy let something pass."""

    policy_id: Text
    decision: Text


class BillingUsageRecorded(Payload, of="billing.usage.recorded"):
    """What a meter counted: `billableSeconds`, or `quantity` with its `unit`. One that is sent must be right; null is
    the same as not sent."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["billableSeconds"], "properties": {"billableSeconds": NOT_NULL}},
                {"required": ["quantity", "unit"], "properties": {"quantity": NOT_NULL, "unit": NOT_NULL}},
            ]
        }
    )

    meter_id: Text
    billable_seconds: Count | None = Field(default_factory=int)
    quantity: Count | None = Field(default_factory=int)
    unit: Literal["seconds", "count"] | None = Field(default_factory=lambda: "count")

    @classmethod
    def problems(cls, payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield from super().problems(payload)
        sent = {name for name, value in payload.items() if value is not None}
        if "billableSeconds" not in sent and not {"quantity", "unit"} <= sent:
            yield "", "needs billableSeconds, or quantity with unit"


class BillingAdjustmentCreated(Payload, of="billing.adjustment.created"):
    """A bill was corrected; a negative amount is a credit."""

    adjustment_id: Text
    meter_id: Text
    amount: Number
    currency: Text


class UsageTick(BillingUsageRecorded, of="usage.tick"):
    """What a meter counted: `billableSeconds`, or `quantity` with its `unit`. One that is sent must be right; null is
    the same as not sent."""


class UsageWarning(Payload, of="usage.warning"):
    """A meter nears a limit."""

    meter_id: Text
    threshold_type: Literal["seconds", "cost"]
    threshold_value: Figure
    current_value: Figure
    message: Text


class UsageStopped(Payload, of="usage.stopped"):
    """A meter counts no more."""

    meter_id: Text
    final_billable_seconds: Count
    reason: Literal["budget_exceeded", "policy_limit", "manual_stop"]
