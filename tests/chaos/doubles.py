"""Which repeated requests have an excuse: something broke between the first time and the second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.chaos.history import Fault, Post


def unexcused(posts: Sequence[Post], faults: Sequence[Fault]) -> Iterator[str]:
    """
    A request that a target took is in doubt if its sender died, or could not write the answer down.

    A target is sent one request at a time, so a fault leaves at most one of its requests in doubt: each fault excuses
    one. What a target did not take is sent again by right.
    """
    free = sorted(faults, key=lambda fault: fault.end)
    first_repeat: dict[int, float] = {}
    last_taken: dict[str, int] = {}
    ordered = sorted(posts, key=lambda post: post.at)
    for number, post in enumerate(ordered):
        for id_ in post.ids:
            before = last_taken.get(id_)
            if before is not None:
                first_repeat.setdefault(before, post.at)
            if post.taken:
                last_taken[id_] = number
    for number, repeated_at in sorted(first_repeat.items(), key=lambda one: one[1]):
        post = ordered[number]
        excuse = next((fault for fault in free if post.at <= fault.end and fault.start <= repeated_at), None)
        if excuse is None:
            yield f"{', '.join(post.ids[:3])} sent again though nothing had broken"
        else:
            free.remove(excuse)
