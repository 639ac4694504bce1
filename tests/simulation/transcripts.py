"""Seeded runs of transcripts (R8): speakers, readers, rebuilders and pruners at once, each of which may die anywhere.

`python -m tests.simulation.transcripts --seeds N --first N`. Every transcript that anybody reads is compared with a
plain model: all events ever committed up to its position, pruned or not. A seed that breaks the promise is named; the
same seed gives the same history.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from millrace.lake.application.retain_events import PruneRanges
from millrace.ledger.adapters.memory import MemoryProjections
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain import names as ledger_module
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import Contention
from millrace.ledger.domain.instants import instant, utc_text
from millrace.ledger.domain.names import Ledger, realtime_ledger
from millrace.ledger.domain.ranges import Ranges
from millrace.ledger.ports import Projection
from millrace.realtime.application import fold_transcripts, read_session
from millrace.realtime.application.fold_transcripts import Folded, FoldTranscripts
from millrace.realtime.application.publish import Publish
from millrace.realtime.application.read_session import ReadSession
from millrace.realtime.domain.transcript import lines, materialise
from millrace.realtime.domain.verdict import Valid
from tests.simulation.scheduler import Killed
from tests.simulation.small_world import SmallWorld, run_seeds
from tests.simulation.tables import FaultyLog, FaultyState, Process, Unlucky

ME = Identity("me", "t", frozenset(), ("*",), frozenset({"producer", "consumer", "operator"}), "t")


def shrink() -> None:
    ledger_module.BUCKET = 5
    read_session.BATCH = 3
    read_session.MAX_READ_BYTES = 400
    fold_transcripts.STORE_AFTER = 2


@dataclass(slots=True)
class FaultyProjections:
    process: Process
    inner: MemoryProjections

    def load(self, ledger: Ledger) -> Projection:
        return self.process.call(lambda: self.inner.load(ledger))

    def store(self, ledger: Ledger, projection: Projection, over: Projection) -> bool:
        kept = Projection(projection.through, dict(projection.state), projection.lost_through)
        return self.process.call(lambda: self.inner.store(ledger, kept, over))


@dataclass(slots=True)
class TranscriptWorld(SmallWorld):
    projections: MemoryProjections = field(default_factory=MemoryProjections)
    sent: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Every event that was ever tried to be published, by its id."""
    sessions: list[str] = field(init=False)
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        SmallWorld.__post_init__(self)
        self.sessions = [f"s{number}" for number in range(self.rng.randint(1, 2))]

    def run(self) -> Counter[str]:
        for number in range(self.rng.randint(1, 3)):
            self.scheduler.spawn(lambda number=number: self._speaker(number), delay=self.rng.choice((0, 5, 40)))  # type: ignore[misc]
        for actor in (self._reader, self._rebuilder, self._pruner):
            for _ in range(self.rng.randint(0, 2)):
                self.scheduler.spawn(actor, delay=self.rng.choice((10, 30, 80, 160)))
        self.scheduler.run()
        self.trouble = 0.0
        for actor in (self._pruner, self._reader, self._rebuilder, self._reader):
            self.scheduler.spawn(actor)
            self.scheduler.run()
        return self.done

    def _speaker(self, number: int) -> None:
        for turn in range(self.rng.randint(1, 5)):
            events = [self._said(f"e{number}-{turn}-{n}") for n in range(self.rng.randint(1, 4))]
            if self.sent and self.rng.random() < 0.3:
                events += self.rng.choices(list(self.sent.values()), k=2)
            self.sent.update({event["eventId"]: event for event in events})
            process = self.process()
            commit = self.commit(process)
            with suppress(*Unlucky, Killed):
                Publish(commit, process.together)(ME, [Valid(event, instant(event["ts"])) for event in events])

    def _said(self, id_: str) -> dict[str, Any]:
        """Partials and finals of a few utterances, early and late in any order."""
        kind = self.rng.choice(("transcript.partial", "transcript.final", "call.connecting"))
        start = self.rng.randint(0, 3)
        said = {"utteranceId": f"u{self.rng.randint(0, 4)}", "speaker": "user", "text": id_, "startMs": start}
        return {
            "eventId": id_,
            "sessionId": self.rng.choice(self.sessions),
            "ts": utc_text(self.rng.randint(0, 5) * 1_000_000_000),
            "type": kind,
            "payload": {**said, "endMs": start} if kind.startswith("transcript") else {"callId": "c"},
            "schemaVersion": "1.0",
        }

    def _fold(self) -> FoldTranscripts:
        process = self.process()
        log, state = FaultyLog(process, self.tables.log), FaultyState(process, self.tables.state)
        read = ReadSession(log, state, Heads(self.scheduler.now), process.together)
        return FoldTranscripts(read, FaultyProjections(process, self.projections))

    def _reader(self) -> None:
        self._read(rebuild=False)

    def _rebuilder(self) -> None:
        self._read(rebuild=True)

    def _read(self, *, rebuild: bool) -> None:
        for session in self.sessions if not self.trouble else self.rng.choices(self.sessions, k=self.rng.randint(1, 3)):
            of = realtime_ledger("t", session)
            with suppress(*Unlucky, Killed, Contention):
                folded = self._fold()(of, rebuild=rebuild)
                self.done["rebuilt" if rebuild else "read"] += 1
                self._prove(of, folded)

    def _pruner(self) -> None:
        for _ in range(self.rng.randint(1, 3)):
            session = realtime_ledger("t", self.rng.choice(self.sessions))
            fold, through = self._fold(), self.rng.randint(1, 12)
            self._caught_up(session)
            prune = PruneRanges(fold.session.log, fold.session.state, lambda: self.rng.random() < 0.9, fold.keep)
            with suppress(*Unlucky, Killed, Contention):
                self.done["pruned"] += prune(session.name, Ranges(((1, through),))).removed

    def _caught_up(self, session: Ledger) -> None:
        """The other readers of the log, which pruning never passes, are somewhere."""
        head = max((page.end for page in self.tables.log.pages.get(session.name, {}).values()), default=0)
        for consumer in ("archive", "fan_out"):
            before = self.tables.state.marks(session).cursors.get(consumer, 0)
            self.tables.state.move_cursor(session, consumer, before, max(before, head - self.rng.choice((0, 0, 3))))

    def _prove(self, session: Ledger, folded: Folded) -> None:
        committed = [
            {**self.sent[event.record.id], "sequence": event.position}
            for page in self.tables.log.pages.get(session.name, {}).values()
            for event in page.events()
            if event.position <= folded.through
        ]
        assert lines(folded.transcript) == materialise(committed), f"another transcript at {folded.through}"
        assert folded.lost_through == 0, f"lost without need: {folded.lost_through}"


def main() -> int:
    shrink()
    done = Counter[str]()
    return run_seeds(lambda seed: done.update(TranscriptWorld(seed).run()), lambda: f": {dict(done)}")


if __name__ == "__main__":
    sys.exit(main())
