"""Markers (M1–M5): what a request may say, what a record is, and the event that tells of each change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from millrace.streams.domain.envelope import EXTENSION, MARKER_STREAM, check_extensions, check_name, check_text, invalid
from millrace.streams.domain.errors import Conflict
from millrace.streams.domain.gap import SOURCE
from millrace.streams.domain.negotiate import CONTRACT_VERSION, StreamLimits

CREATED, MOVED, DELETED = "sdk.marker.created", "sdk.marker.moved", "sdk.marker.deleted"
MAX_REVISION = 2**53 - 1
MAX_ALT_M = 1_000_000_000

_MARKER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~:@+-]{0,127}")
"""What a path can carry whichever way it is encoded."""


def check_create(sent: Any, limits: StreamLimits) -> dict[str, Any]:
    _only(sent, "marker_id", "label", "position", "topic_id", "extensions")
    marker: dict[str, Any] = {
        "label": check_text("label", sent.get("label")),
        "position": check_position(sent.get("position")),
    }
    if sent.get("marker_id") is not None:
        marker["marker_id"] = check_marker_id(sent["marker_id"])
    if sent.get("topic_id") is not None:
        marker["topic_id"] = check_name("topic_id", sent["topic_id"])
    return marker | _extensions(sent, limits)


def check_marker_id(value: Any) -> str:
    if not isinstance(value, str) or not _MARKER_ID.fullmatch(value):
        rule = "marker_id must be 1 to 128 letters, digits and . _ ~ : @ + -, the first a letter or digit."
        raise invalid("marker_id", rule, value)
    return value


def check_move(sent: Any, limits: StreamLimits) -> tuple[dict[str, Any], int]:
    """What changes of the record, and the revision it is expected to have. Extensions that are not sent stay."""
    _only(sent, "position", "expected_revision", "extensions")
    changes = {"position": check_position(sent.get("position")), **_extensions(sent, limits)}
    return changes, check_revision(sent.get("expected_revision"))


def _extensions(sent: Mapping[str, Any], limits: StreamLimits) -> dict[str, Any]:
    check_extensions(sent.get("extensions"), limits)
    return {} if sent.get("extensions") is None else {"extensions": sent["extensions"]}


def check_revision(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_REVISION:
        raise invalid("expected_revision", "expected_revision must be an integer from 1.", value)
    return value


def check_position(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise invalid("position", "position must be an object with lat and lon.", value)
    unknown = next((name for name in value if name not in ("lat", "lon", "alt_m")), None)
    if unknown is not None:
        raise invalid(f"position.{unknown[:64]}", "A position has lat, lon and alt_m, nothing else.", value[unknown])
    for name, bound in (("lat", 90), ("lon", 180)):
        if not _is_number(value.get(name)) or not -bound <= value[name] <= bound:
            raise invalid(f"position.{name}", f"{name} must be a number from -{bound} to {bound}.", value.get(name))
    alt = value.get("alt_m")
    if alt is not None and not (_is_number(alt) and -MAX_ALT_M <= alt <= MAX_ALT_M):
        rule = f"alt_m must be a number of metres from -{MAX_ALT_M} to {MAX_ALT_M}."
        raise invalid("position.alt_m", rule, alt)
    return {name: number for name, number in value.items() if number is not None}


def stale(marker_id: str, expected: int, observed: int) -> Conflict:
    return Conflict(
        f"The marker has revision {observed}, not {expected}; refresh from the marker list before trying again.",
        domain="marker",
        marker_id=marker_id,
        expected_revision=expected,
        observed_revision=observed,
    )


def marker_event(runtime_id: str, kind: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Every change as an event of the runtime's stream `markers`."""
    return {
        "event_id": f"marker-{record['marker_id']}-{record['revision']}",
        "runtime_id": runtime_id,
        "stream_id": MARKER_STREAM,
        "contract_version": CONTRACT_VERSION,
        "ts_ms": record["updated_ts_ms"],
        "event_type": EXTENSION,
        "severity": "info",
        "source_component": SOURCE,
        "payload": {"extension_event_type": kind, "marker": dict(record)},
    }


def _only(sent: Any, *known: str) -> None:
    if not isinstance(sent, dict):
        raise invalid("body", "The body must be an object.", sent)
    unknown = next((name for name in sent if name not in known), None)
    if unknown is not None:
        raise invalid(unknown[:64], f"No such field; known: {', '.join(known)}.", sent[unknown])


def _is_number(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or isinstance(value, float)
