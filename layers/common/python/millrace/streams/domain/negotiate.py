"""Negotiation (T5): which contract version, capabilities and limits a client works under with a runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from millrace.ledger.domain.kinds import kind_of
from millrace.ledger.domain.stored import known
from millrace.streams.domain.errors import ContractIncompatible, InvalidArgument

CONTRACT_VERSION = 2
CONTRACT_RELEASE = "v2.5"
NAMESPACE = "v2"
RECEIPT_TERMINALITY = "sdk.capability.receipt_terminality"
CAPABILITIES = frozenset(
    {"sdk.capability.async_events", "sdk.capability.cursor_replay", "sdk.capability.markers", RECEIPT_TERMINALITY}
)
MAX_LISTED = 64
FIELDS = ("supported_contract_versions", "requested_capabilities", "profile", "limits")


@dataclass(frozen=True, slots=True)
class StreamLimits:
    max_poll_events: int
    max_event_bytes: int
    max_batch_bytes: int
    max_extension_keys: int


@dataclass(frozen=True, slots=True)
class Negotiated:
    version: int
    profile: str
    capabilities: tuple[str, ...]
    limits: StreamLimits

    def stored(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Negotiated:
        limits = StreamLimits(**known(StreamLimits, stored["limits"]))
        return cls(stored["version"], stored["profile"], tuple(stored["capabilities"]), limits)

    def answer(self, runtime_id: str) -> dict[str, Any]:
        return {
            "runtime_id": runtime_id,
            "active_contract_version": self.version,
            "effective_capabilities": list(self.capabilities),
            "effective_limits": asdict(self.limits),
            "contract_release": CONTRACT_RELEASE,
            "schema_namespace": NAMESPACE,
        }


PROFILES: Mapping[str, StreamLimits] = {
    "desktop-full": StreamLimits(256, 65_536, 1_048_576, 32),
    "desktop-local-runtime": StreamLimits(64, 32_768, 1_048_576, 32),
    "embedded-alloc": StreamLimits(32, 8_192, 1_048_576, 32),
}


def negotiate(asked: Any) -> Negotiated:
    if not isinstance(asked, dict):
        raise _invalid("body", "The body must be an object with supported_contract_versions.", asked)
    unknown = next((name for name in asked if name not in FIELDS), None)
    if unknown is not None:
        raise _invalid(unknown[:64], f"No such field; known: {', '.join(FIELDS)}.", asked[unknown])
    versions = _listed(asked, "supported_contract_versions", int)
    if not versions:
        raise _invalid("supported_contract_versions", "Name at least one contract version, an integer.", versions)
    if CONTRACT_VERSION not in versions:
        text = f"This hub speaks contract version {CONTRACT_VERSION}."
        raise ContractIncompatible(text, supported_contract_versions=[CONTRACT_VERSION])
    wanted = _listed(asked, "requested_capabilities", str, [])
    profile = "desktop-full" if asked.get("profile") is None else asked["profile"]
    if not isinstance(profile, str) or profile not in PROFILES:
        raise _invalid("profile", f"profile must be one of {', '.join(PROFILES)}.", profile)
    capabilities = tuple(sorted(CAPABILITIES.intersection(wanted)))
    return Negotiated(CONTRACT_VERSION, profile, capabilities, _limits(PROFILES[profile], asked.get("limits")))


def _limits(base: StreamLimits, overrides: Any) -> StreamLimits:
    if overrides is None:
        return base
    if not isinstance(overrides, dict):
        raise _invalid("limits", "limits must be an object of limits to override.", overrides)
    chosen = asdict(base)
    unknown = next((name for name in overrides if name not in chosen), None)
    if unknown is not None:
        raise _invalid(f"limits.{unknown[:64]}", f"No such limit; known: {', '.join(chosen)}.", overrides[unknown])
    given = {name: value for name, value in overrides.items() if value is not None}
    ranges = {"max_poll_events": (1, 10_000), "max_event_bytes": (256, 65_536), "max_extension_keys": (0, 32)}
    for name, (low, high) in ranges.items():
        chosen[name] = _within(name, given.get(name, chosen[name]), low, high)
    batch = given.get("max_batch_bytes", base.max_batch_bytes)
    chosen["max_batch_bytes"] = _within("max_batch_bytes", batch, chosen["max_event_bytes"], 1_048_576)
    return StreamLimits(**chosen)


def _within(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _invalid(f"limits.{name}", f"{name} must be an integer from {low} to {high}.", value)
    return value


def _listed(asked: Mapping[str, Any], field: str, kind: type, default: Any = None) -> list[Any]:
    value = default if asked.get(field) is None else asked[field]
    good = isinstance(value, list) and all(isinstance(v, kind) and not isinstance(v, bool) for v in value)
    if not good or len(value) > MAX_LISTED:
        what = "integers" if kind is int else "strings"
        raise _invalid(field, f"{field} must be a list of at most {MAX_LISTED} {what}.", value)
    return list(value)


def _invalid(field: str, rule: str, value: Any) -> InvalidArgument:
    return InvalidArgument(rule, field=field, value_class=kind_of(value))
