"""What the realtime doors take beside events."""

from __future__ import annotations

from millrace.realtime.doors.requests import checkpoint_of

CHECKPOINT = {"consumerId": "c", "watermarkTs": "2026-02-16T10:00:00Z", "watermarkEventId": "e"}


def test_r7_an_optional_member_that_is_null_counts_as_left_out() -> None:
    assert checkpoint_of({**CHECKPOINT, "watermarkSequence": None}) == checkpoint_of(CHECKPOINT)
