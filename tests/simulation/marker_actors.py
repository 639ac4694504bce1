"""The writers and readers of markers in the simulator, and the sweep that tells of what dead writers changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from millrace.ledger.application.failures import Failures
from millrace.streams.application.markers import ManageMarkers, SettleMarkers
from millrace.streams.domain.errors import SdkError
from tests.simulation.announced import MARKERS, RUNTIME, Asked, Listed, Story
from tests.simulation.scheduler import Killed
from tests.simulation.stage import ME, POLICY, Stage
from tests.simulation.tables import Unlucky


class _Keys:
    def current(self) -> bytes:
        return b"key"

    def find(self, _key_id: bytes) -> Sequence[bytes]:
        return [b"key"]


@dataclass(slots=True)
class MarkerActors:
    stage: Stage
    story: Story
    oldest_ms: int
    """No process of the storm grows older."""
    ids: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = [f"k{n}" for n in range(self.stage.rng.randint(1, 2))]

    def spawn(self) -> None:
        rng, spawn = self.stage.rng, self.stage.scheduler.spawn
        for _ in range(rng.randint(1, 4)):
            spawn(self._writer, delay=rng.choice((0, 0, 5, 40, 120)))
        for _ in range(rng.randint(1, 3)):
            spawn(self._settler, delay=rng.choice((30, 150, 400)))
        spawn(self._lister, delay=rng.choice((10, 60, 120)))

    def sweep(self) -> None:
        self._settle(lambda: True)
        self._lister()

    def _markers(self) -> ManageMarkers:
        stage, process = self.stage, self.stage.process()
        return ManageMarkers(
            stage.announce(process),
            stage.rows(process),
            stage.rows(process),
            stage.runtimes(process),
            _Keys(),
            POLICY,
            stage.hasher,
            stage.scheduler.now,
            stage.new_id,
        )

    def _writer(self) -> None:
        for _ in range(self.stage.rng.randint(1, 5)):
            asked = self._question(self.stage.rng.choice(self.ids))
            self.story.asked.append(asked)
            with suppress(*Unlucky, Killed):
                try:
                    asked.answer = self._ask(asked)
                except SdkError as refusal:
                    asked.answer = refusal
                asked.answered = self.stage.scheduler.steps

    def _question(self, marker_id: str) -> Asked:
        """Mostly one that is allowed, unless somebody is faster."""
        rng, row = self.stage.rng, self.stage.tables.rows.items.get((MARKERS, marker_id))
        live = row is not None and not row.content["deleted"]
        kind = rng.choice(("move", "move", "delete", "create") if live else ("create", "create", "create", "move"))
        expected = max(1, (row.version if row else 0) + rng.choice((0, 0, 0, 0, -1, 1)))
        return Asked(kind, marker_id, expected, len(self.story.asked), self.stage.scheduler.steps)

    def _ask(self, asked: Asked) -> dict[str, Any]:
        markers, me = self._markers(), replace(ME, client_id=asked.client_id)
        position = {"lat": asked.number, "lon": 0}
        if asked.kind == "create":
            return markers.create(me, RUNTIME, {"marker_id": asked.marker_id, "label": "l", "position": position})
        if asked.kind == "move":
            sent = {"position": position, "expected_revision": asked.expected}
            return markers.move(me, RUNTIME, asked.marker_id, sent)
        return markers.delete(me, RUNTIME, asked.marker_id, asked.expected)

    def _settler(self) -> None:
        for _ in range(self.stage.rng.randint(1, 4)):
            with suppress(*Unlucky, Killed):
                self._settle(lambda: self.stage.rng.random() < 0.8)
            self.stage.scheduler.pause()

    def _settle(self, may_go_on: Callable[[], bool]) -> None:
        process = self.stage.process()
        rows, now = self.stage.rows(process), self.stage.scheduler.now
        failures = Failures()
        SettleMarkers(self.stage.announce(process), rows, rows, now, may_go_on)(self.oldest_ms, failures)
        failures.raise_first()

    def _lister(self) -> None:
        for _ in range(self.stage.rng.randint(1, 3)):
            sent, records, cursor = self.stage.scheduler.steps, list[Any](), None
            with suppress(*Unlucky, Killed):
                while True:
                    page = self._markers().list(ME, RUNTIME, cursor, self.stage.rng.choice((1, 500)), None)
                    records += page["markers"]
                    cursor = page["next_cursor"]
                    if cursor is None:
                        break
                self.story.listed.append(Listed(records, sent, self.stage.scheduler.steps))
