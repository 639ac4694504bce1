"""Transcripts and retention under the seeded scheduler; and without one of their rules, which must be noticed."""

from __future__ import annotations

import subprocess

import pytest

from tests.simulation.planted import Bug
from tests.simulation.test_simulation import assert_is_there, run

SEEDS = 1_000
PLANTED_SEEDS = 6_000
CODE = "realtime/application/fold_transcripts.py"
BUGS = (
    Bug(
        "nothing goes before its text is kept",
        "lake/application/retain_events.py",
        "kept = self.keep(of, goes.last)",
        "kept = goes.last",
    ),
    Bug(
        "nothing goes above what is kept",
        "lake/application/retain_events.py",
        "pruned = prune(of, min(goes.last, kept), may_go)",
        "pruned = prune(of, goes.last, may_go)",
    ),
    Bug(
        "only what is stored is kept",
        CODE,
        "            self.projections.store(session, folded.to_store(), base)\n",
        "            self.projections.store(session, folded.to_store(), base)\n            return folded.through\n",
    ),
    Bug(
        "who finds an event gone loads what was kept of it",
        CODE,
        "if kept.through > folded.through:",
        "if kept.through < 0:",
    ),
    Bug(
        "a rebuilt transcript has what was pruned",
        CODE,
        "                    folded.take_in(stored)\n",
        "",
    ),
    Bug(
        "a transcript is stored over the one it was made from",
        "ledger/adapters/memory.py",
        "if stored.edition != over.edition:",
        "if stored.through < 0:",
    ),
    Bug(
        "a position is folded only when all before it are",
        CODE,
        "self.through = max(self.through, read.reached)",
        "self.through = max(self.through, read.head)",
    ),
)


def soak(*arguments: str, bug: Bug | None = None) -> subprocess.CompletedProcess[str]:
    return run("tests.simulation.transcripts", *arguments, bug=bug)


def test_every_transcript_is_that_of_all_events_ever_committed_on_every_seed() -> None:
    """R8: partials and finals, early and late, read and rebuilt, pruned, and killed in between."""
    ended = soak("--seeds", str(SEEDS))
    assert ended.returncode == 0, ended.stderr
    assert "'pruned'" in ended.stdout


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.rule)
def test_a_planted_bug_of_transcripts_is_caught(bug: Bug) -> None:
    assert_is_there(bug)
    ended = soak("--seeds", str(PLANTED_SEEDS), bug=bug)
    assert ended.returncode == 1, f"nobody noticed that this no longer holds: {bug.rule}"
    assert "A promise is broken: seed" in ended.stderr
