"""Recency: the windows of time in which consumers note that a ledger has grown, so that sweeps look there first."""

from __future__ import annotations

WINDOW_MS = 900_000
"""A ledger is noted once in each window in which it grows, however often it does."""
KEPT_MS = 14 * 24 * 3_600_000
"""For so long a note is kept: far longer than sweeps may fail to run."""


def window_of(now_ms: int) -> int:
    return now_ms // WINDOW_MS


def end_of(window: int) -> int:
    """When the window is over, in ms."""
    return (window + 1) * WINDOW_MS
