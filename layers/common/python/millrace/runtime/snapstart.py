"""SnapStart: heavy imports run before the snapshot is taken. Elsewhere they run at the first request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def before_snapshot(preload: Callable[[], Any]) -> None:
    """Run `preload` when Lambda takes its snapshot; a no-op where there is none. It must not open connections."""
    try:
        from snapshot_restore_py import register_before_snapshot
    except ImportError:
        return
    register_before_snapshot(preload)
