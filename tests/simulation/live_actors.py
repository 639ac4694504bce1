"""The actors of live delivery: sync clients, snapshot subscribers, and fan-outs."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event
from millrace.live.application.answer import Answers
from millrace.live.application.broadcast import Broadcast
from millrace.live.application.call_crew import CallCrew
from millrace.live.application.continue_snapshot import ContinueSnapshot
from millrace.live.application.send_snapshot import Overtaken, SendSnapshot
from millrace.live.application.subscribe import Subscribe
from millrace.live.ports import Connection, Handover, Subscription
from millrace.sync.application.sync import Sync
from tests.simulation.check_live import check_socket
from tests.simulation.history import History
from tests.simulation.live import FaultyHandovers, FaultySubscriptions, FaultyWire, Net, Socket, render
from tests.simulation.scheduler import Killed, Scheduler
from tests.simulation.tables import FaultyIndex, FaultyLog, FaultyState, Process, Tables, Unlucky

NEVER_MS = 10**15


@dataclass(slots=True)
class Live:
    rng: random.Random
    scheduler: Scheduler
    tables: Tables
    process: Callable[[], Process]
    containers: list[Heads]
    net: Net = field(default_factory=Net)
    fan_outs: int = 1

    def spawn(self, ledgers: list[Ledger]) -> None:
        self.fan_outs = self.rng.choice((1, 1, 2))
        for _ in range(self.fan_outs):
            self.scheduler.spawn(lambda: self._fan_out(ledgers), delay=self.rng.choice((0, 5, 30)))
        for number in range(self.rng.randint(1, 3)):
            delay = self.rng.choice((0, 10, 40, 100))
            if self.rng.random() < 0.5:
                self.scheduler.spawn(self.syncer(f"sync{number}", self.rng.choice(ledgers)), delay=delay)
            else:
                self.scheduler.spawn(self.subscriber(f"tail{number}", self.rng.choice(ledgers)), delay=delay)

    def origin(self) -> str:
        """Some events come in over a socket that listens, too."""
        return self.rng.choice(["", "", "", "sync0"])

    def settle(self, ledgers: list[Ledger]) -> None:
        for ledger in ledgers:
            while not self.broadcast(self.process())(ledger):
                pass

    def check(self, history: History, trouble: float) -> None:
        once = trouble == 0 and self.fan_outs == 1
        for socket in self.net.sockets.values():
            pages = self.tables.log.pages.get(socket.ledger.name, {})
            events = [event for first in sorted(pages) for event in pages[first].events()]
            check_socket(socket, events, history.prunable.get(socket.ledger.name, 0), once=once)

    def broadcast(self, process: Process, call_crew: CallCrew | None = None) -> Broadcast:
        return Broadcast(
            FaultyLog(process, self.tables.log),
            FaultyState(process, self.tables.state),
            FaultySubscriptions(process, self.net.subscriptions),
            self.net.connections,
            FaultyWire(process, self.net, self.rng),
            process.together,
            self.scheduler.now,
            render,
            lambda subscription: "expired 0",
            lambda: self.rng.random() < 0.9,
            lambda _subscription, lost, _left, _now: [f"gap {lost}"],
            call_crew,
        )

    def _fan_out(self, ledgers: list[Ledger]) -> None:
        for _ in range(self.rng.randint(3, 12)):
            for ledger in ledgers:
                with suppress(*Unlucky, Killed):
                    self.broadcast(self.process())(ledger)
            self.scheduler.pause()

    def _open(self, name: str, ledger: Ledger, partitions: frozenset[str] | None) -> Socket:
        socket = self.net.sockets[name] = Socket(name, ledger, partitions)
        return socket

    def syncer(self, name: str, ledger: Ledger) -> Callable[[], None]:
        """A connection's sync cycle through the hub's own handler; a handler that fails closes it, as the hub does."""
        partitions = self.rng.choice((None, frozenset("a"), frozenset("bc")))
        since = self.rng.choice((0, 0, self.rng.randint(0, 6)))

        def syncer() -> None:
            socket = self._open(name, ledger, partitions)
            identity = Identity("c", "t", frozenset({"p"}), ("*",), frozenset({"consumer"}), "t", NEVER_MS)
            connection = Connection(name, "snake", identity, "p", NEVER_MS)
            asked: dict[str, Any] = {"since_committed_id": since}
            if partitions is not None:
                asked["partitions"] = sorted(partitions)
            if self.rng.random() < 0.2:
                asked["sync_to_committed_id"] = self.rng.randint(0, 4)  # remembered from another connection
            while True:
                try:
                    answer = self._answers(self.process(), ledger).on_sync(connection, asked, None)
                except (*Unlucky, Killed):
                    socket.open = False
                    return
                page = answer.messages[0]["payload"]
                connection = answer.connection
                socket.covered = page["sync_to_committed_id"]
                socket.arrived += [("page", event["committed_id"]) for event in page["events"]]
                if not page["has_more"]:
                    socket.complete = True
                    return
                asked["since_committed_id"] = page["next_since_committed_id"]
                self.scheduler.pause()

        return syncer

    def _answers(self, process: Process, ledger: Ledger) -> Answers:
        sync = Sync(
            FaultyLog(process, self.tables.log),
            FaultyState(process, self.tables.state),
            FaultyIndex(process, self.tables.index),
            self.rng.choice([*self.containers, Heads(self.scheduler.now)]),
            process.together,
            direct_span=self.rng.choice((0, 3, 1000)),
        )
        subscriptions = FaultySubscriptions(process, self.net.subscriptions)
        absent = cast("Any", None)
        return Answers(
            absent, absent, sync, absent, subscriptions, absent, self.scheduler.now, absent, lambda _connection: ledger
        )

    def subscriber(self, name: str, ledger: Ledger) -> Callable[[], None]:
        start = self.rng.choice(("snapshot", "tail", "after"))
        after = self.rng.randint(0, 6)

        def subscriber() -> None:
            socket = self._open(name, ledger, None)
            process = self.process()
            wire = FaultyWire(process, self.net, self.rng)

            def begin(floor: int, head: int) -> int:
                socket.begin = {"snapshot": floor - 1, "tail": head, "after": min(after, head)}[start]
                return socket.begin

            def opened(watermark: int, _begin: int) -> bool:
                socket.covered = watermark
                return wire.post(name, f"opened {watermark}")

            subscription = Subscription(name, "s1", ledger.name, None, "snake", "p", NEVER_MS, 0)
            heads = self.rng.choice([*self.containers, Heads(self.scheduler.now)])
            sender = self._sender(process, socket, self.rng.choice((0, NEVER_MS)))
            try:
                alive = Subscribe(sender, heads)(subscription, begin, opened, _send(wire))
                socket.complete = alive and self._is_live(socket)
            except Overtaken as gone:
                socket.arrived.append(("gap", gone.lost))
            except (*Unlucky, Killed):
                socket.open = False

        return subscriber

    def _sender(self, process: Process, socket: Socket, slice_ms: int) -> SendSnapshot:
        return SendSnapshot(
            FaultyLog(process, self.tables.log),
            FaultyState(process, self.tables.state),
            FaultySubscriptions(process, self.net.subscriptions),
            FaultyHandovers(process, lambda handover: self._bring(socket, handover)),
            process.together,
            self.scheduler.now,
            slice_ms,
        )

    def _bring(self, socket: Socket, handover: Handover) -> None:
        """A queue may bring a message twice."""
        for number in range(self.rng.choice((1, 1, 2))):
            actor = self._continuation(socket, handover, f"{handover.step} {number} {self.scheduler.steps}")
            self.scheduler.spawn(actor, delay=self.rng.choice((1, 5, 30)))

    def _continuation(self, socket: Socket, handover: Handover, sender_id: str) -> Callable[[], None]:
        def continuation() -> None:
            process = self.process()
            wire = FaultyWire(process, self.net, self.rng)
            go_on = ContinueSnapshot(
                sender=self._sender(process, socket, self.rng.choice((0, 0, NEVER_MS))),
                connections=self.net.connections,
                wire=wire,
                send=_send(wire),
                farewell=lambda _: "expired 0",
                overtaken=lambda _, gone: [f"gap {gone.lost}"],
                new_id=lambda: sender_id,
            )
            try:
                go_on(handover)
                socket.complete = socket.complete or (socket.open and self._is_live(socket))
            except (*Unlucky, Killed):
                self._after_trouble(socket, handover, sender_id)

        return continuation

    def _after_trouble(self, socket: Socket, handover: Handover, sender_id: str) -> None:
        """The message comes again. If this sender had taken the snapshot over, it is found dead, and the connection is
        closed; if nobody had, somebody goes on."""
        key = (handover.connection, handover.id)
        step, by = self.net.subscriptions.senders.get(key, (0, ""))
        if by == sender_id:
            socket.open = False
        elif step == handover.step:
            self._bring(socket, handover)

    def _is_live(self, socket: Socket) -> bool:
        row = self.net.subscriptions.rows.get((socket.id, "s1"))
        return row is not None and row.live


def _send(wire: FaultyWire) -> Callable[[Subscription, str, Event], bool]:
    return lambda to, phase, event: wire.post(to.connection, f"{phase} {event.position}")
