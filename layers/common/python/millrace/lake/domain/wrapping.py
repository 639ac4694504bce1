"""Wrapping: a committed event of any contract in a catalog envelope (C1). Its payload is the event as it was stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from millrace.lake.domain.catalog import MAX_VERSION, Envelope
from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.instants import moment, utc_text
from millrace.ledger.domain.names import split_key
from millrace.ledger.domain.page import Record
from millrace.sync.domain.as_sent import split

CATALOG, SYNC = "catalog", "sync"
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Reading:
    """Where a contract's event tells its type, version and time (milliseconds, or a date-time)."""

    type: Callable[[Body], Any]
    version: Callable[[Body], Any]
    time: Callable[[Body], Any]


def _sync_event(body: Body) -> Body:
    event = body.get("event")
    return event if isinstance(event, dict) else {}


def _sync_time(body: Body) -> Any:
    meta = body.get("meta")
    return meta.get("clientTs") if isinstance(meta, dict) else None


def _one(_body: Body) -> int:
    return 1


_READINGS: Mapping[str, _Reading] = {
    SYNC: _Reading(
        lambda body: _sync_event(body).get("type"), lambda body: _sync_event(body).get("schemaVersion"), _sync_time
    ),
    "realtime": _Reading(lambda body: body.get("type"), _one, lambda body: body.get("ts")),
    "streams": _Reading(
        lambda body: body.get("event_type"), lambda body: body.get("contract_version"), lambda body: body.get("ts_ms")
    ),
    "delivery": _Reading(lambda body: body.get("event_type"), _one, lambda body: body.get("timestamp")),
    "audit": _Reading(lambda body: body.get("action"), _one, lambda body: body.get("ts_ms")),
}
_OTHER = _Reading(lambda body: body.get("event_type", body.get("type")), _one, lambda body: body.get("ts_ms"))


def wrap(ledger: str, record: Record, position: int, time_ms: int) -> Envelope:
    """The envelope of a committed event, of which only its ledger's name is known. `ValueError` if it was pruned."""
    if record.body is None:
        raise ValueError(f"position {position} of ledger {ledger} was pruned: its body is gone")
    contract, *scope = split_key(ledger)
    stored = split(record.body)[1].encode() if contract == SYNC else record.body
    body = json.loads(stored)
    if contract == CATALOG:
        return _own(body, position)
    reading = _READINGS.get(contract, _OTHER)
    fields = body if isinstance(body, dict) else {}
    version = reading.version(fields)
    trace = fields.get("trace_id")
    return Envelope(
        event_type=f"{contract}.{_type(reading.type(fields))}",
        event_version=version if type(version) is int and 1 <= version <= MAX_VERSION else 1,
        idempotency_key=record.id,
        occurred_at=_occurred(reading.time(fields), time_ms),
        source="/".join(["millrace", contract, *scope[1:]]),
        payload=stored,
        trace_id=trace if isinstance(trace, str) and trace.strip() else None,
        sequence_position=position,
    )


def _own(body: Body, position: int) -> Envelope:
    """A catalog event is stored in its envelope already; only the position is new."""
    return Envelope(
        body["event_type"],
        body["event_version"],
        body["idempotency_key"],
        body["occurred_at"],
        body["source"],
        canonical(body["payload"]),
        body.get("trace_id"),
        position,
    )


def _type(value: Any) -> str:
    return value if isinstance(value, str) and value.strip() else "event"


def _occurred(value: Any, time_ms: int) -> str:
    """The event's own time where it tells one that a calendar knows, else the time of its commit."""
    try:
        if isinstance(value, str):
            return utc_text(moment(value))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return utc_text(int(value) * 1_000_000)
    except (ValueError, OverflowError):
        pass
    return utc_text(time_ms * 1_000_000)
