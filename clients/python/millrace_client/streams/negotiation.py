"""What a runtime's hub and client agree on before anything is emitted or polled (T5)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from millrace_client.streams.sdk_errors import NoAnswer
from millrace_client.sync.protocol import Json

VERSION = 2
"""The contract version this client speaks."""

Profile = Literal["desktop-full", "desktop-local-runtime", "embedded-alloc"]


@dataclass(frozen=True, slots=True)
class Limits:
    max_poll_events: int
    max_event_bytes: int
    max_batch_bytes: int
    max_extension_keys: int


@dataclass(frozen=True, slots=True)
class Negotiated:
    """What the hub and this client agreed on."""

    runtime_id: str
    active_contract_version: int
    effective_capabilities: tuple[str, ...]
    effective_limits: Limits
    contract_release: str
    schema_namespace: str


def negotiated(body: Json) -> Negotiated:
    """The hub's answer. Raises `NoAnswer` for what is none."""
    try:
        return Negotiated(
            str(body["runtime_id"]),
            int(body["active_contract_version"]),
            tuple(body["effective_capabilities"]),
            Limits(*(int(body["effective_limits"][field.name]) for field in fields(Limits))),
            str(body["contract_release"]),
            str(body["schema_namespace"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise NoAnswer(f"An answer to negotiate that is not of the contract: {error!r}") from error
