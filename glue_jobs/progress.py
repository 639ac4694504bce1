"""Progress: each stage of a job when it begins, and how long it took when the next one does."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


class StageTimes:
    """Call it with what is done now; `end` when nothing follows."""

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._begun: float | None = None

    def __call__(self, stage: str) -> None:
        self.end()
        self._tell(stage)
        self._begun = self._clock()

    def end(self) -> None:
        if self._begun is not None:
            self._tell(f"  took {self._clock() - self._begun:.1f} s")
        self._begun = None


def outcome(counts: Mapping[str, int], size: int) -> list[str]:
    """What a run of compaction read, set aside and published, in lines for a person."""
    return [
        f"read {counts['objects']} objects, {counts['lines']} lines, {size / 1e6:.1f} MB",
        f"set aside {counts['quarantined']} lines and {counts['objects_set_aside']} objects",
        f"published {counts['new']} new events; {counts['duplicates']} lines repeat others",
    ]
