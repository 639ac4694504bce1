"""S12, S14: messages of one connection, each in a process of its own that may die anywhere, under a seeded scheduler.

The real code runs on a line with DynamoDB's bad days: errors before and after an effect, lost answers, kills.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from millrace.ledger.domain.access import Identity
from millrace.live.adapters import memory
from millrace.live.adapters.memory import MemoryConnections, MemorySubscriptions, MemoryWire
from millrace.live.application.answer import Answers, SocketAnswer
from millrace.live.application.converse import Converse
from millrace.live.application.take_turn import TakeTurn
from millrace.live.domain.line import SUBMIT, SYNC, TURN_MS
from millrace.live.domain.messages import message
from millrace.live.ports import Connection, Turn
from tests.simulation.scheduler import Killed, Scheduler
from tests.simulation.tables import Process, Unlucky

C, CAP, NEVER = "c1", 3, 10**15
KINDS = (SUBMIT, SUBMIT, SUBMIT, SYNC, "heartbeat")
ME = Identity("me", "t", frozenset({"demo"}), ("*",), frozenset({"producer"}), "t", NEVER)
SEEDS = 600


@dataclass
class Line:
    """What happened to the numbers of one connection."""

    seed: int
    connections: MemoryConnections = field(default_factory=MemoryConnections)
    wire: MemoryWire = field(default_factory=MemoryWire)
    handled: list[tuple[str, int]] = field(default_factory=list)
    """Message and number of each that was handled, in the order in which they began."""
    running: set[str] = field(default_factory=set)
    changes: int = 0
    kinds: dict[int, str] = field(default_factory=dict)
    key: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.trouble = self.rng.choice((0.0, 0.02, 0.1))
        slow = (50, 400) if self.trouble else ()
        self.scheduler = Scheduler(self.rng, self.rng.choice((0.0, 0.5, 0.9)), (0, 1, 5, *slow))
        self.connections.open(C, self.scheduler.now())
        self.connections.rows[C].connection = Connection(C, "snake", ME, "demo", NEVER)

    def run(self) -> None:
        for number in range(self.rng.randint(2, 9)):
            self.scheduler.spawn(self.sender(f"m{number}", self.rng.choice(KINDS)), self.rng.choice((0, 0, 3, 30)))
        self.scheduler.run()
        self._check_order()
        self._check_end()

    def sender(self, msg_id: str, kind: str) -> Callable[[], None]:
        return lambda: self.say(Process(self.scheduler, self.rng, self.trouble), msg_id, kind)

    def say(self, process: Process, msg_id: str, kind: str) -> None:
        """As the socket's function does it."""
        connections = cast("Any", FaultyLine(process, self))
        wire = cast("Any", FaultyPosts(process, self.wire))
        taken: list[Turn] = []

        def take_turn(connection: str, kind: str) -> Turn:
            turn = TakeTurn(connections, self.scheduler.now, lambda _ms: self.scheduler.pause())(connection, kind)
            self.refused[turn.refused] += 1
            taken.append(turn)
            return turn

        def handle(connection: Connection, _payload: Any, msg_id: str) -> SocketAnswer:
            self._begin(msg_id, taken[0], connection)
            try:
                process.call(lambda: None)
            except Unlucky:
                self.running.discard(msg_id)
                raise
            self.running.discard(msg_id)
            self.changes += 1
            changed = replace(connection, subscribed=connection.subscribed + 1)
            return SocketAnswer(changed, [message("done", {}, msg_id)])

        answers = cast("Answers", SimpleNamespace(by_type=dict.fromkeys(KINDS, handle)))
        converse = Converse(connections, MemorySubscriptions(), wire, answers, self.scheduler.now, take_turn)
        text = json.dumps({"type": kind, "protocol_version": "1.0", "payload": {}, "msg_id": msg_id})
        try:
            converse(C, text)
        except Unlucky:
            with suppress(*Unlucky):
                converse.fail(C)

    def _begin(self, msg_id: str, turn: Turn, connection: Connection) -> None:
        assert not self.running, f"{msg_id} began while {self.running} were not done"
        assert connection.subscribed == self.changes, "it does not see what the messages before it changed"
        self.running.add(msg_id)
        self.handled.append((msg_id, turn.number))

    def answered(self) -> list[int]:
        """The numbers of those that were handled and answered, if only with an error."""
        numbers = dict(self.handled)
        answers = [json.loads(text).get("msg_id") for text in self.wire.sent.get(C, [])]
        return [numbers[msg_id] for msg_id in answers if msg_id in numbers]

    def _check_order(self) -> None:
        numbers = [number for _, number in self.handled]
        assert numbers == list(range(1, len(numbers) + 1)), "a message was passed, or handled twice"
        assert self.answered() == numbers[: len(self.answered())], "answers are out of order, or one is missing"

    def _check_end(self) -> None:
        """A client that goes on in its own way, whatever way that is, is answered or closed: nothing hangs for ever."""
        kind = self.rng.choice((SUBMIT, SYNC, "heartbeat"))
        troubled, self.trouble = self.trouble, 0.0
        before = len(self.answered())
        self.scheduler.clock_ms += 2 * TURN_MS
        self.scheduler.spawn(self.sender("last", kind))
        self.scheduler.run(limit=self.scheduler.steps + 50_000)
        row = self.connections.rows.get(C)
        if row is None or C in self.wire.closed:
            assert troubled, "a connection was closed although nothing failed"
            return
        assert len(self.answered()) == before + 1, f"{kind} was not answered: {self.wire.sent[C][-1]}"
        assert (row.served, row.in_flight, row.syncs) == (row.taken, 0, False), "a counter has leaked"


@dataclass
class FaultyLine:
    process: Process
    line: Line

    def line_up(self, id_: str, kind: str, now_ms: int) -> Turn:
        """A try again whose first try took a number finds that number, if nobody came in between."""
        line, mine = self.line, self.process.rng.getrandbits(64)
        first: list[Turn] = []

        def effect() -> Turn:
            row = line.connections.rows.get(id_)
            if first and row is not None and line.key == mine:
                return line.connections.look(id_, first[0])
            turn = line.connections.line_up(id_, kind, now_ms)
            row = line.connections.rows.get(id_)
            if turn.number and row is not None:
                line.key, line.kinds[turn.number] = mine, kind
                waiting = [number for number, of in line.kinds.items() if of == SUBMIT and number > row.served]
                assert len(waiting) <= CAP, "more submits are in flight than may be"
                assert len(waiting) == row.in_flight
            first.append(turn)
            return turn

        return self.process.call(effect)

    def look(self, id_: str, turn: Turn) -> Turn:
        return self.process.call(lambda: self.line.connections.look(id_, turn))

    def end_turn(self, turn: Turn, connection: Connection, now_ms: int) -> None:
        self.process.call(lambda: self.line.connections.end_turn(turn, connection, now_ms))

    def remove(self, id_: str) -> None:
        self.process.call(lambda: self.line.connections.remove(id_))


@dataclass
class FaultyPosts:
    process: Process
    wire: MemoryWire

    def post(self, connection: str, text: str) -> bool:
        """The gateway's client tries nothing again."""
        self.process.scheduler.pause()
        fate = self.process.rng.random()
        if fate < self.process.trouble / 2:
            raise Killed
        posted = self.wire.post(connection, text)
        if fate < self.process.trouble:
            raise Unlucky[0]("perhaps it arrived")
        return posted

    def close(self, connection: str) -> None:
        self.process.call(lambda: self.wire.close(connection))


@pytest.fixture(autouse=True)
def _few_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_IN_FLIGHT", CAP)


def run_all(made: type[MemoryConnections]) -> Counter[str]:
    refused: Counter[str] = Counter()
    for seed in range(SEEDS):
        line = Line(seed, made())
        try:
            line.run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        refused += line.refused
    return refused


def test_s12_whatever_dies_answers_leave_in_order_and_no_connection_hangs_for_ever() -> None:
    refused = run_all(MemoryConnections)
    assert refused.keys() >= {"", "in_flight", SYNC, "gone"}, "the seeds meet every refusal"


class PassesTheDead(MemoryConnections):
    def look(self, id_: str, turn: Turn) -> Turn:
        found = MemoryConnections.look(self, id_, turn)
        return replace(found, served=found.number - 1) if found.ahead == 1 else found


class EndsTwice(MemoryConnections):
    def end_turn(self, turn: Turn, connection: Connection, now_ms: int) -> None:
        row = self.rows.get(connection.id)
        if row is not None:
            row.served = min(row.served, turn.number - 1)
        MemoryConnections.end_turn(self, turn, connection, now_ms)


class CountsNoLess(MemoryConnections):
    def end_turn(self, turn: Turn, connection: Connection, now_ms: int) -> None:
        MemoryConnections.end_turn(self, replace(turn, kind=""), connection, now_ms)


class ForgetsWhatChanged(MemoryConnections):
    def end_turn(self, turn: Turn, connection: Connection, now_ms: int) -> None:
        MemoryConnections.end_turn(self, turn, replace(connection, subscribed=0), now_ms)


class RefusesForEver(MemoryConnections):
    def line_up(self, id_: str, kind: str, now_ms: int) -> Turn:
        turn = MemoryConnections.line_up(self, id_, kind, now_ms)
        return replace(turn, refused=SYNC) if turn.refused == "stuck" else turn


@pytest.mark.parametrize("broken", [PassesTheDead, EndsTwice, CountsNoLess, ForgetsWhatChanged, RefusesForEver])
def test_a_broken_line_is_noticed(broken: type[MemoryConnections]) -> None:
    with pytest.raises(AssertionError, match="seed"):
        run_all(broken)
