"""One seeded run of rows that announce their changes: emitters of transitions, marker writers, and the settling sweep.

Everybody works on the same few messages and markers. Processes fail at every call, and die at the latest when their
time is up, as functions do: intents older than that are of dead processes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from millrace.ledger.application.heads import Heads
from millrace.streams.adapters.memory import MemoryRuntimes
from millrace.streams.domain.negotiate import RECEIPT_TERMINALITY, negotiate
from tests.simulation.announced import RUNTIME, TENANT, Story
from tests.simulation.check_announced import check_messages, check_settled
from tests.simulation.check_markers import check_markers
from tests.simulation.emit_actors import Emitters
from tests.simulation.history import Held, held
from tests.simulation.marker_actors import MarkerActors
from tests.simulation.rows import RecordedLog, RecordedRows, RecordedTables
from tests.simulation.scheduler import Scheduler
from tests.simulation.stage import Stage

NEVER_MS = 10**12


@dataclass(slots=True)
class AnnounceWorld:
    seed: int
    stage: Stage = field(init=False)
    story: Story = field(init=False)
    emitters: Emitters = field(init=False)
    markers: MarkerActors = field(init=False)

    def __post_init__(self) -> None:
        rng = random.Random(f"announce {self.seed}")
        scheduler = Scheduler(rng, stickiness=rng.choice((0.0, 0.5, 0.8, 0.95)))
        steps = lambda: scheduler.steps  # noqa: E731
        tables = RecordedTables(log=RecordedLog(steps=steps), rows=RecordedRows(steps=steps))
        runtimes = MemoryRuntimes(tables.state, scheduler.now)
        capabilities = rng.choice(([], [RECEIPT_TERMINALITY]))
        asked = {"supported_contract_versions": [2], "requested_capabilities": capabilities}
        runtimes.negotiated[TENANT, RUNTIME, None] = negotiate(asked)
        self.stage = Stage(
            rng,
            scheduler,
            tables,
            runtimes,
            [Heads(scheduler.now) for _ in range(rng.randint(1, 3))],
            trouble=rng.choice((0.0, 0.03, 0.06, 0.12)),
            lifetime_ms=rng.choice((20_000, 60_000, 200_000)),
        )
        self.story = Story(sent_is_terminal=not capabilities)
        self.emitters = Emitters(self.stage, self.story)
        self.markers = MarkerActors(self.stage, self.story, oldest_ms=self.stage.lifetime_ms)

    def run(self) -> Held:
        """Raises AssertionError when a promise is broken."""
        tables = self.stage.tables
        self.emitters.spawn()
        self.markers.spawn()
        self.stage.scheduler.run()
        check_messages(self.story, tables)
        check_markers(self.story, tables, swept=False)
        self._calm(self.markers.sweep)
        check_markers(self.story, tables, swept=True)
        self._calm(self.emitters.send_all_again)
        check_messages(self.story, tables)
        check_settled(tables)
        return held(tables, tables.log.order, self.story)

    def _calm(self, actor: Callable[[], None]) -> None:
        """No process of the storm lives any more, nothing goes wrong, and there is time for everything."""
        stage = self.stage
        stage.scheduler.clock_ms += stage.lifetime_ms + 1
        stage.trouble, stage.lifetime_ms = 0, NEVER_MS
        stage.scheduler.spawn(actor)
        stage.scheduler.run(limit=200_000)
