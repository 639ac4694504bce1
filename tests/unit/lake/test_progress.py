"""What `make compact` tells while it works."""

from __future__ import annotations

from glue_jobs.progress import StageTimes, outcome


def test_each_stage_is_told_as_it_begins_and_how_long_it_took_as_the_next_one_does() -> None:
    told: list[str] = []
    times = iter((10.0, 12.5, 13.0, 13.25))
    progress = StageTimes(told.append, lambda: next(times))
    progress("reading")
    progress("writing")
    progress.end()
    progress.end()
    assert told == ["reading", "  took 2.5 s", "writing", "  took 0.2 s"]


def test_a_run_tells_what_it_read_set_aside_and_published() -> None:
    counts = {"objects": 3, "lines": 10, "new": 6, "duplicates": 3, "quarantined": 1, "objects_set_aside": 1}
    assert outcome(counts, 1_500_000) == [
        "read 3 objects, 10 lines, 1.5 MB",
        "set aside 1 lines and 1 objects",
        "published 6 new events; 3 lines repeat others",
    ]
