"""Line: how the messages of a connection wait for each other. Each has a number; the lowest that is not done is next.

A number is taken when a message arrives, and the next one is served only after the answer to the one before it was
sent. So answers leave in the order of the numbers, or not at all: when a message is not done in time, whoever waits
behind it, or comes after it, closes the connection instead of passing it.
"""

from __future__ import annotations

SUBMIT, SYNC = "submit_events", "sync"
SLOW = frozenset({"connect", SYNC, "subscribe"})
"""Messages that may take long: a snapshot, a page of a long history, keys from somebody else's server."""
STUCK_MS = 10_000
"""Nothing else takes so long; who took the turn has died."""
PATIENCE_MS = 25_000
"""How long a message waits in all: less than its function lives."""
TURN_MS = 35_000
"""Longer than the function lives: after this nobody works on a message any more."""
NEXT_MS, PLACE_MS, LONGEST_MS = 10, 30, 1_000
"""About what a turn takes, so that those far back seldom look."""


def pause_ms(ahead: int) -> int:
    """How long to wait before looking again, with so many messages still to be done before this one."""
    return min(LONGEST_MS, NEXT_MS + (ahead - 1) * PLACE_MS)


def is_dead(taken: int, served: int, until_ms: int, now_ms: int) -> bool:
    """Whether messages are not done that nobody can be working on: the last one came too long ago. Whoever would be
    refused because of them, or would wait for them, closes the connection instead."""
    return served < taken and until_ms <= now_ms


def is_stuck(served: int, slow: int, moved_ms: int, arrived_ms: int, now_ms: int) -> bool:
    """Whether to give up waiting: the line has not moved for too long, or this message has no time left."""
    if now_ms - arrived_ms > PATIENCE_MS:
        return True
    return served >= slow and now_ms - max(moved_ms, arrived_ms) > STUCK_MS
