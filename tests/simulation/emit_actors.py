"""The emitters of the simulator: transitions of few messages from several streams, under few event ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from millrace.streams.application.emit import Emit
from millrace.streams.domain.transition import RANKS, STATES, undone
from tests.simulation.announced import RUNTIME, Said, Story
from tests.simulation.scheduler import Killed
from tests.simulation.stage import ME, POLICY, Stage
from tests.simulation.tables import Unlucky


@dataclass(slots=True)
class Emitters:
    stage: Stage
    story: Story
    pool: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By stream: the events that anybody will ever emit into it."""

    def __post_init__(self) -> None:
        streams = [f"s{n}" for n in range(self.stage.rng.randint(1, 3))]
        for _ in range(self.stage.rng.randint(4, 16)):
            self.pool.setdefault(self.stage.rng.choice(streams), []).append(self._event())

    def _event(self) -> dict[str, Any]:
        """Some ids get several contents, and a message is told of in several streams."""
        rng = self.stage.rng
        event = {
            "event_id": f"e{rng.randint(0, 11)}",
            "contract_version": 2,
            "ts_ms": 1,
            "event_type": "HealthSnapshot",
            "severity": "info",
            "source_component": "c",
            "payload": {"n": rng.randint(0, 1)},
        }
        if rng.random() < 0.85:
            to = rng.choice((*RANKS, *RANKS, "queued", "dispatching", *STATES))
            event.update(event_type="DeliveryStateTransition", message_id=f"m{rng.randint(0, 1)}", payload={"to": to})
        return event

    def spawn(self) -> None:
        for _ in range(self.stage.rng.randint(2, 6)):
            self.stage.scheduler.spawn(self._emitter(), delay=self.stage.rng.choice((0, 0, 5, 40, 120)))

    def _emitter(self) -> Callable[[], None]:
        """Sends one batch until it is answered, and sometimes again; mostly in the order a message goes through."""
        rng = self.stage.rng
        stream = rng.choice(list(self.pool))
        batch = rng.choices(self.pool[stream], k=rng.randint(1, 4))
        if rng.random() < 0.6:
            batch.sort(key=lambda event: RANKS.get(event["payload"].get("to"), len(RANKS)))

        def emitter() -> None:
            for _ in range(rng.randint(1, 5)):
                if self._say(stream, batch) and rng.random() < 0.7:
                    return

        return emitter

    def _say(self, stream: str, batch: Sequence[dict[str, Any]]) -> bool:
        sent = self.stage.scheduler.steps
        try:
            results = self._emit()(ME, RUNTIME, stream, batch)
        except (*Unlucky, Killed):
            return False
        answered = self.stage.scheduler.steps
        for event, result in zip(batch, results, strict=True):
            self.story.said.append(Said(stream, event, batch, result, sent, answered))
        return True

    def _emit(self) -> Emit:
        process = self.stage.process()
        announce = self.stage.announce(process, undone)
        return Emit(
            announce.commit,
            announce,
            self.stage.runtimes(process),
            cast("Any", None),
            cast("Any", None),
            POLICY,
            self.stage.hasher,
            process.together,
            self.stage.scheduler.now,
        )

    def send_all_again(self) -> None:
        for stream, events in self.pool.items():
            for event in events:
                assert self._say(stream, [event]), "an emission failed although nothing went wrong"
