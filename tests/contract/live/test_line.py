"""S12: submits that a connection pipelines, handled by many processes at once as API Gateway starts them."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.access import Identity
from millrace.ledger.wiring import nap, now_ms
from millrace.live.adapters.memory import MemoryConnections, MemoryHandovers, MemorySubscriptions, MemoryWire
from millrace.live.application.answer import Answers
from millrace.live.application.converse import Converse
from millrace.live.application.send_snapshot import SendSnapshot
from millrace.live.application.subscribe import Subscribe
from millrace.live.application.take_turn import TakeTurn
from millrace.live.domain.messages import MAX_IN_FLIGHT
from millrace.live.ports import Connections
from millrace.sync.adapters.memory import MemoryIndex
from millrace.sync.application.submit import Submit
from millrace.sync.application.sync import Sync
from tests.contract.conftest import Adapters
from tests.contract.live.test_live import on_dynamodb
from tests.support.aws_tables import client_of

C = "c1"
DEADLINE = 60
ROLES = frozenset({"producer", "consumer"})


@dataclass
class Burst:
    """A connection whose messages all run at once. Its first submit holds its turn until it is let go."""

    connections: Connections
    adapters: Adapters
    wire: MemoryWire = field(default_factory=MemoryWire)
    arrived: list[int] = field(default_factory=list)
    began: int = field(default_factory=now_ms)
    seconds: int = 0
    go: threading.Event = field(default_factory=threading.Event)

    def clock(self) -> int:
        """Later only when the test says so: neither messages a second nor a line that is stuck is what is tested."""
        return self.began + 1000 * self.seconds

    def nap(self, ms: int) -> None:
        assert now_ms() < self.began + 1000 * DEADLINE, "its turn never comes"
        nap(ms if self.adapters.kind != "memory" else ms // 10)

    def converse(self) -> Converse:
        """As a process of its own builds it: nothing but storage is shared."""
        parts, numbers = self.adapters, itertools.count()
        heads, subscriptions = Heads(self.clock), MemorySubscriptions()
        nonce = lambda: b"%d-%d" % (threading.get_ident(), next(numbers))  # noqa: E731
        commit = Commit(parts.claims, parts.log, parts.state, heads, in_turn, self.clock, nonce, lambda _attempt: None)
        answers = Answers(
            lambda _token: Identity("me", "t", frozenset({"demo"}), ("*",), ROLES, "t", self.clock() + 10**9),
            Submit(commit, self.clock, lambda *_: "open"),
            Sync(parts.log, parts.state, MemoryIndex(), heads, in_turn),
            Subscribe(
                SendSnapshot(parts.log, parts.state, subscriptions, MemoryHandovers(), in_turn, self.clock), heads
            ),
            subscriptions,
            self.wire,
            self.clock,
            lambda: "s",
        )
        return Converse(self.connections, subscriptions, self.wire, answers, self.clock, self.take_turn)

    def take_turn(self, connection: str, kind: str) -> Any:
        turn = TakeTurn(_Arrivals(self.connections, self.arrived), self.clock, self.nap)(connection, kind)
        if kind == "submit_events" and not turn.refused:
            assert self.go.wait(DEADLINE)
        return turn

    def say(self, kind: str, payload: Any, msg_id: str) -> None:
        text = {"type": kind, "protocol_version": "1.0", "payload": payload, "msg_id": msg_id}
        self.converse()(C, json.dumps(text))

    def submit(self, number: int) -> None:
        event = {"id": f"e{number}", "partitions": ["a"], "event": {"type": "t", "payload": number}}
        self.say("submit_events", {"events": [event]}, str(number))

    def heard(self) -> list[dict[str, Any]]:
        return [json.loads(text) for text in self.wire.sent.get(C, [])]


@dataclass
class _Arrivals:
    """Notes when a message was given its number, or refused."""

    connections: Any
    arrived: list[int]

    def line_up(self, id_: str, kind: str, now: int) -> Any:
        turn = self.connections.line_up(id_, kind, now)
        self.arrived.append(turn.number)
        return turn

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connections, name)


@pytest.fixture
def burst(batching: Adapters, request: pytest.FixtureRequest) -> Iterator[Burst]:
    connections: Connections = MemoryConnections()
    if batching.kind != "memory":
        connections = on_dynamodb(client_of(request, batching.kind)).connections
    made = Burst(connections, batching)
    connections.open(C, made.clock())
    made.say("connect", {"token": "t", "client_id": "me"}, "hello")
    assert made.heard()[-1]["type"] == "connected"
    made.arrived.clear()
    made.wire.sent.clear()
    yield made
    made.go.set()


def pipeline(burst: Burst, count: int, then: Callable[[], None]) -> None:
    """Every message arrives after the one before it, and all are there before the first is done."""
    with ThreadPoolExecutor(count) as pool:
        running = []
        for number in range(count):
            burst.seconds += number % 100 == 0
            running.append(pool.submit(burst.submit, number))
            deadline = time.monotonic() + DEADLINE
            while len(burst.arrived) <= number:
                assert time.monotonic() < deadline, f"message {number} did not arrive"
                time.sleep(0.0005)
        then()
        burst.go.set()
        for future in running:
            future.result(DEADLINE)


def test_s12_pipelined_submits_are_answered_in_the_order_they_arrived(burst: Burst) -> None:
    """150 of them; fewer on the embedded stack, where all the threads and the emulator share this machine's cores."""
    count = 40 if burst.adapters.kind != "memory" else 150
    pipeline(burst, count, lambda: None)
    heard = burst.heard()
    assert {message["type"] for message in heard} == {"submit_events_result"}
    assert [message["msg_id"] for message in heard] == [str(number) for number in range(count)]
    committed = [message["payload"]["results"][0]["committed_id"] for message in heard]
    assert committed == list(range(1, count + 1)), "and they are in the log in that order"


@pytest.mark.parametrize("batching", ["memory"], indirect=True)
def test_s12_of_250_submits_in_flight_the_surplus_is_told_to_come_back(burst: Burst) -> None:
    refused: list[dict[str, Any]] = []
    pipeline(burst, 250, lambda: refused.extend(burst.heard()))
    assert [message["payload"]["code"] for message in refused] == ["rate_limited"] * 50, "at once, before any is done"
    assert [message["msg_id"] for message in refused] == [str(number) for number in range(MAX_IN_FLIGHT, 250)]
    assert {message["payload"]["details"]["retry_after_ms"] for message in refused} == {1000}
    answered = burst.heard()[50:]
    assert [message["msg_id"] for message in answered] == [str(number) for number in range(MAX_IN_FLIGHT)]
    assert {message["payload"]["results"][0]["status"] for message in answered} == {"committed"}
    burst.submit(250)
    assert burst.heard()[-1]["payload"]["results"][0]["committed_id"] == MAX_IN_FLIGHT + 1, "there is room again"
