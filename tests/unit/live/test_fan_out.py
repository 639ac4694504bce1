"""The fan-out of a batch of rings: every step is tried, whatever became of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger, realtime_ledger
from millrace.live.application.fan_out import FanOut
from millrace.live.domain.turns import SLICE_MS

SYNC, SESSION = Ledger.of("sync", "t", "demo"), realtime_ledger("t", "s1")


@dataclass
class Recorder:
    """Every collaborator of a fan-out. The steps that fail do so as storage does."""

    failing: frozenset[str] = frozenset()
    has_time: bool = True
    reaches_head: bool = True
    takes_ms: int = 0
    now_ms: int = 0
    done: list[tuple[str, list[str]]] = field(default_factory=list)

    def fan_out(self) -> FanOut:
        return FanOut(
            index=Bell(self, "index"),
            rest=Bell(self, "rest"),
            later=Bell(self, "later"),
            wake_targets=lambda names: self.step("wake", names),
            broadcast=self.broadcast,
            may_go_on=lambda: self.has_time,
            clock=lambda: self.now_ms,
            together=in_turn,
        )

    def broadcast(self, ledger: Ledger) -> bool:
        self.now_ms += self.takes_ms
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
    ("failing", "failures", "passed_on"),
    [
        ((), [], []),
        (("index",), [("index", "")], []),
        (("wake",), [("wake", "t")], []),
        (("sync",), [], [SYNC]),
        (("index", "wake", "realtime"), [("index", ""), ("wake", "t")], [SESSION]),
    ],
)
def test_one_failure_holds_nothing_else_back(
    failing: tuple[str, ...], failures: list[tuple[str, str]], passed_on: list[Ledger]
) -> None:
    """Nor the log's next batch: what comes again with its records is only what nobody else can be asked for."""
    parts = Recorder(frozenset(failing))
    told = parts.fan_out()([SYNC, SESSION], grown=True)
    assert parts.done == EVERYTHING + [("later", [ledger.name]) for ledger in passed_on]
    assert [(failure.step, failure.subject) for failure in told.found] == failures
    assert [(one.step, one.subject) for one in told.passed_on] == [("fan_out", ledger.name) for ledger in passed_on]


def test_a_ledger_that_fails_and_cannot_be_passed_on_comes_again_with_its_batch() -> None:
    told = Recorder(frozenset({"sync", "later"})).fan_out()([SYNC], grown=True)
    assert [(failure.step, failure.subject) for failure in told.found] == [("later", ""), ("fan_out", SYNC.name)]
    assert told.passed_on == []


def test_a_ledger_that_fails_again_is_given_up_where_it_is_seen() -> None:
    """From the queue it goes to the dead letters in the end; it is not passed on for ever."""
    parts = Recorder(frozenset({"sync"}))
    told = parts.fan_out()([SYNC], grown=False)
    assert [(failure.step, failure.subject) for failure in told.found] == [("fan_out", SYNC.name)]
    assert parts.done == [("sync", [SYNC.name])]


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


LOUD = [Ledger.of("sync", "loud", f"p{number:03}") for number in range(200)]
CALM = Ledger.of("sync", "zz-calm", "demo")


def test_a_tenant_waits_for_one_ledger_of_each_other_tenant_and_not_for_all() -> None:
    """S9, the bound: tenants take turns within a batch."""
    parts = Recorder()
    parts.fan_out()([Ledger.to_read("nameless"), *LOUD, CALM], grown=True)
    served = [names[0] for step, names in parts.done if step == "sync"]
    assert served.index(CALM.name) == 1
    assert sorted(served) == sorted(ledger.name for ledger in [*LOUD, CALM])


def test_a_batch_of_the_log_holds_up_the_next_for_a_slice_and_leaves_nothing_out() -> None:
    """S10, the bound: a slice and the one ledger that is being served; what is left is rung for."""
    parts = Recorder(takes_ms=300)
    told = parts.fan_out()([*LOUD, CALM], grown=True)
    assert parts.now_ms < SLICE_MS + parts.takes_ms
    served = [names[0] for step, names in parts.done if step == "sync"]
    [left] = [names for step, names in parts.done if step == "rest"]
    assert CALM.name in served
    assert sorted(served + left) == sorted(ledger.name for ledger in [*LOUD, CALM])
    assert not told.found


def test_what_is_rung_for_is_served_to_the_end() -> None:
    """Else it might be rung for again for ever."""
    parts = Recorder(takes_ms=300)
    parts.fan_out()(LOUD, grown=False)
    assert len(parts.done) == len(LOUD)


def test_ledgers_that_cannot_be_rung_for_come_again_with_their_batch() -> None:
    parts = Recorder(frozenset({"rest"}), takes_ms=SLICE_MS)
    told = parts.fan_out()(LOUD[:2], grown=True)
    assert [(failure.step, failure.subject) for failure in told.found] == [("rest", "")]


@pytest.mark.parametrize("failing", [frozenset(), frozenset({"sync"})])
def test_a_fan_out_that_rings_for_itself_comes_to_an_end(failing: frozenset[str]) -> None:
    """Lambda would end such a loop by itself, and is told not to: every round serves a ledger, whatever comes of it."""
    recorder = Recorder(failing=failing, takes_ms=SLICE_MS)
    left, rounds = [Ledger.of("sync", "t", f"p{number}") for number in range(40)], 0
    while left:
        recorder.done.clear()
        recorder.fan_out()(left, grown=True)
        rung = [name for step, names in recorder.done if step == "rest" for name in names]
        assert len(rung) < len(left)
        left, rounds = [ledger for ledger in left if ledger.name in rung], rounds + 1
    assert rounds <= 40
