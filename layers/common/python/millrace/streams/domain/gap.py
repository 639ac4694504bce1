"""The StreamGap event that the hub makes (T8, T9): it names positions that are gone, before any event after them."""

from __future__ import annotations

from typing import Any

from millrace.streams.domain.negotiate import CONTRACT_VERSION

SOURCE = "millrace"


def gap_event(runtime_id: str, stream_id: str, expected: int, observed: int, now_ms: int) -> dict[str, Any]:
    """`expected` is the first position that is gone, `observed` the first that is left. It stands before that one."""
    return {
        "event_id": f"gap-{observed - 1}",
        "runtime_id": runtime_id,
        "stream_id": stream_id,
        "seq_no": observed - 1,
        "contract_version": CONTRACT_VERSION,
        "ts_ms": now_ms,
        "event_type": "StreamGap",
        "severity": "warn",
        "source_component": SOURCE,
        "payload": {
            "expected_seq_no": expected,
            "observed_seq_no": observed,
            "dropped_count": observed - expected,
        },
    }
