"""The fan-out of a batch of rings: every step is tried, whatever became of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger, realtime_ledger
from millrace.live.application.fan_out import FanOut

SYNC, SESSION = Ledger.of("sync", "t", "demo"), realtime_ledger("t", "s1")


@dataclass
class Recorder:
    """Every collaborator of a fan-out. The steps that fail do so as storage does."""

    failing: frozenset[str] = frozenset()
    has_time: bool = True
    reaches_head: bool = True
    done: list[tuple[str, list[str]]] = field(default_factory=list)

    def fan_out(self) -> FanOut:
        return FanOut(
            index=Bell(self, "index"),
            rest=Bell(self, "rest"),
            wake_targets=lambda names: self.step("wake", names),
            broadcast=self.broadcast,
            may_go_on=lambda: self.has_time,
        )

    def broadcast(self, ledger: Ledger) -> bool:
        self.step(ledger.contract, [ledger.name])
        return self.reaches_head

    def step(self, name: str, ledgers: Sequence[str]) -> None:
        self.done.append((name, list(ledgers)))
        if name in self.failing:
            raise Unavailable(f"{name} is out of reach")


@dataclass
class Bell:
    recorder: Recorder
    name: str

    def ring(self, ledgers: Iterable[Ledger]) -> None:
        self.recorder.step(self.name, [ledger.name for ledger in ledgers])


EVERYTHING = [
    ("index", [SYNC.name]),
    ("wake", [SYNC.name, SESSION.name]),
    ("sync", [SYNC.name]),
    ("realtime", [SESSION.name]),
]


@pytest.mark.parametrize(
    ("failing", "failures"),
    [
        ((), []),
        (("index",), [("index", "")]),
        (("wake",), [("wake", "")]),
        (("sync",), [("fan_out", SYNC.name)]),
        (("index", "wake", "realtime"), [("index", ""), ("wake", ""), ("fan_out", SESSION.name)]),
    ],
)
def test_one_failure_holds_nothing_else_back(failing: tuple[str, ...], failures: list[tuple[str, str]]) -> None:
    parts = Recorder(frozenset(failing))
    told = parts.fan_out()([SYNC, SESSION], grown=True)
    assert parts.done == EVERYTHING
    assert [(failure.step, failure.subject) for failure in told.found] == failures


def test_a_ring_that_is_not_the_logs_own_wakes_nobody_else() -> None:
    parts = Recorder()
    assert parts.fan_out()([SYNC, SESSION], grown=False).found == []
    assert parts.done == EVERYTHING[2:]


@pytest.mark.parametrize(("has_time", "rung"), [(False, [("rest", [SYNC.name])]), (True, [])])
def test_a_ledger_is_rung_for_again_only_if_time_ran_out(has_time: bool, rung: list[tuple[str, list[str]]]) -> None:
    """If not, another fan-out has moved the cursor and goes on."""
    parts = Recorder(has_time=has_time, reaches_head=False)
    parts.fan_out()([SYNC], grown=False)
    assert parts.done == [("sync", [SYNC.name]), *rung]
