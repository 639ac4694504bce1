"""`status()` (T11): a summary of a stream's events. Its size is bounded, whatever the stream's length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.streams.domain.envelope import EVENT_TYPES, EXTENSION, TRANSITION

MAX_INTERFACES = 256
MAX_HEALTH_KEYS = 32

State = dict[str, Any]


def nothing() -> State:
    return {"events": 0, "by_type": {}, "by_severity": {}, "deliveries": {}, "interfaces": {}}


def fold(state: State, event: Mapping[str, Any], position: int) -> None:
    """Take one more event into account, in the order of their positions."""
    kind = event["event_type"] if event["event_type"] in EVENT_TYPES else EXTENSION
    seen = {"event_id": event["event_id"], "seq_no": position, "ts_ms": event["ts_ms"]}
    state["events"] += 1
    _count(state["by_type"], kind)
    _count(state["by_severity"], event["severity"])
    state["last_event"] = {**seen, "event_type": event["event_type"]}
    payload = event["payload"]
    if kind == TRANSITION:
        _count(state["deliveries"], payload["to"])
    elif kind == "RuntimeStateChanged":
        state["runtime_state"] = {**seen, "state": _text(payload.get("to", payload.get("state")))}
    elif kind == "InterfaceStateChanged":
        _interface(state["interfaces"], payload, seen)
    elif kind == "ErrorRaised":
        state["last_error"] = {**seen, "severity": event["severity"], "source_component": event["source_component"]}
    elif kind == "HealthSnapshot":
        plain = {k: v for k, v in payload.items() if isinstance(v, (int, float, bool)) or _text(v) is not None}
        state["health"] = {**seen, "snapshot": dict(sorted(plain.items())[:MAX_HEALTH_KEYS])}


def _interface(interfaces: dict[str, Any], payload: Mapping[str, Any], seen: Mapping[str, Any]) -> None:
    name = _text(payload.get("interface", payload.get("interface_id")))
    if name is None or (name not in interfaces and len(interfaces) >= MAX_INTERFACES):
        return
    interfaces[name] = {**seen, "state": _text(payload.get("to", payload.get("state")))}


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and len(value) <= 128 else None
