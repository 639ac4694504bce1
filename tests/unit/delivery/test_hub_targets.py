"""What keeps, wakes and drains a hub's targets, on adapters in memory."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from millrace.delivery.adapters.hub_receivers import Guarded
from millrace.delivery.adapters.memory.drains import MemoryDrains, MemoryLine
from millrace.delivery.adapters.memory.targets import (
    MemoryAgenda,
    MemoryDirectory,
    MemoryPositions,
    MemorySecrets,
    MemoryWakes,
)
from millrace.delivery.application.deliver import Deliver
from millrace.delivery.application.expect_drain import ExpectDrain
from millrace.delivery.application.held_by_targets import HeldByTargets
from millrace.delivery.application.lag import Lag, SweepTargets
from millrace.delivery.application.manage_targets import ManageTargets, TooManyTargets
from millrace.delivery.application.take_turns import TakeTurns
from millrace.delivery.application.wake_targets import RemindTargets, WakeTargets
from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.drains import EXPECTED_MS, DrainLease, Shares
from millrace.delivery.domain.events import captured
from millrace.delivery.domain.families import Family
from millrace.delivery.domain.hub_targets import HubTarget, SecretSet, check_target
from millrace.delivery.domain.outcomes import held
from millrace.delivery.domain.retry import Schedule
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.targets import TargetState
from millrace.delivery.ports.drains import Expected
from millrace.delivery.ports.targets import Position, Wake
from millrace.delivery.receivers.registry import RECEIVERS
from millrace.ledger.adapters.memory import MemoryLog, MemoryState, in_turn
from millrace.ledger.application.failures import Failures
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import BadRequest, Conflict, Forbidden, NotFound, Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Origin, Page, Record
from millrace_client.journal.memory.journal import MemoryJournal
from millrace_client.journal.memory.ledger import MemoryLedger
from tests.support.worlds import Clock, Scripted, accept, event

OPERATOR = Identity("O", "acme", frozenset({"*"}), ("*",), frozenset({"operator"}), "acme")
TEAM = "delivery#acme#team"
DAY = 86_400_000
SYNC = {"contract": "sync", "scope": "demo"}


def secret(letter: str) -> str:
    return "whsec_" + base64.b64encode(letter.encode() * 32).decode()


def body(**change: Any) -> dict[str, Any]:
    whole = {
        "type": "external",
        "url": "https://example.com/hook",
        "signing_secret": secret("a"),
        "sources": [{"contract": "delivery", "scope": "*"}],
        **change,
    }
    return {name: value for name, value in whole.items() if value is not None}


@dataclass
class Hub:
    clock: Clock = field(default_factory=Clock)
    log: MemoryLog = field(default_factory=MemoryLog)
    state: MemoryState = field(default_factory=MemoryState)
    directory: MemoryDirectory = field(default_factory=MemoryDirectory)
    positions: MemoryPositions = field(default_factory=MemoryPositions)
    agenda: MemoryAgenda = field(default_factory=MemoryAgenda)
    drains: MemoryDrains = field(default_factory=MemoryDrains)
    line: MemoryLine = field(default_factory=MemoryLine)
    wakes: MemoryWakes = field(default_factory=MemoryWakes)
    secrets: MemorySecrets = field(default_factory=MemorySecrets)

    @property
    def targets(self) -> ManageTargets:
        return ManageTargets(
            directory=self.directory,
            states=self.directory.states,
            secrets=self.secrets,
            positions=self.positions,
            wakes=self.wakes,
            log=self.log,
            state=self.state,
            heads=Heads(self.clock),
            together=in_turn,
            clock=self.clock,
            kinds=RECEIVERS,
            loopback=False,
        )

    @property
    def lag(self) -> Lag:
        return Lag(self.log, self.state, self.positions, in_turn, self.clock)

    @property
    def wake_targets(self) -> WakeTargets:
        expect = ExpectDrain(self.drains, self.agenda, self.clock)
        return WakeTargets(self.directory, expect, self.wakes, in_turn)

    def put(self, target_id: str = "a", **change: Any) -> dict[str, Any]:
        return self.targets.put(OPERATOR, target_id, body(**change))

    def commit(self, name: str = TEAM, events: int = 1) -> None:
        ledger = Ledger(name, name)
        self.state.register(ledger)
        first = 1 + max((page.end for page in self.log.pages.get(name, {}).values()), default=0)
        records = tuple(Record(f"e{first + n}", b"", event(f"e{first + n}")) for n in range(events))
        self.log.append(ledger, Page(first, records, self.clock(), Origin("C1"), b""))

    def fare(self, state: TargetState, target_id: str = "a") -> None:
        self.directory.states.states[f"acme#{target_id}"] = state


@pytest.fixture
def hub() -> Hub:
    return Hub()


def test_a_new_target_looks_for_what_is_retained(hub: Hub) -> None:
    told = hub.put(families=["b.", "a."])
    assert (told["start"], told["families"], told["paused"], told["revision"]) == ("retained", ["a.", "b."], False, 1)
    assert hub.wakes.sent == [Wake("acme", "a", scan=True)]
    assert hub.targets.get(OPERATOR, "a") == told
    assert hub.targets.list(OPERATOR) == {"targets": [told]}


def test_secrets_are_kept_sealed_and_told_by_number(hub: Hub) -> None:
    """D6"""
    told = hub.put(auth_secret="hush")
    assert (told["has_auth_secret"], told["signing_secrets"]) == (True, 1)
    assert "hush" not in str(told)
    assert "hush" not in repr(hub.directory.get("acme", "a"))
    told = hub.put(signing_secret=None)
    assert (told["has_auth_secret"], told["signing_secrets"]) == (True, 1), "what is left out stays"
    assert hub.put(signing_secret=None, auth_secret="")["has_auth_secret"] is False


def test_a_replaced_signing_secret_signs_on_for_a_day(hub: Hub) -> None:
    hub.put()
    hub.clock.ahead(DAY)
    assert hub.put(signing_secret=secret("b"))["signing_secrets"] == 2
    assert hub.put(signing_secret=secret("b"))["signing_secrets"] == 2, "the same again changes nothing"
    kept = hub.directory.get("acme", "a")
    assert kept is not None
    signing = SecretSet.of(hub.secrets.open(kept.target.key, kept.target.sealed))
    assert signing.signing_at(hub.clock()) == (secret("b"), secret("a"))
    hub.clock.ahead(DAY)
    assert signing.signing_at(hub.clock()) == (secret("b"),)


def test_a_target_whose_secrets_are_lost_can_be_put_again_with_new_ones(hub: Hub) -> None:
    hub.put()
    hub.secrets.kept[-1] = ("elsewhere", "")
    told = hub.targets.get(OPERATOR, "a")
    assert (told["signing_secrets"], told["unsigned"]) == (0, False), "nothing is sent, signed or not"
    with pytest.raises(BadRequest) as refused:
        hub.put(signing_secret=None)
    assert refused.value.details["field"] == "signing_secret"
    assert hub.put()["signing_secrets"] == 1


def test_a_target_without_a_signing_secret_is_told_to_be_unsigned(hub: Hub) -> None:
    """D12"""
    assert hub.put(signing_secret=None)["unsigned"] is True
    assert hub.targets.get(OPERATOR, "a")["unsigned"] is True
    assert hub.put()["unsigned"] is False
    assert hub.put(signing_secret=None)["unsigned"] is False, "what is left out stays"
    told = hub.put(signing_secret="")
    assert (told["unsigned"], told["signing_secrets"]) == (True, 0), "empty is none, at once"
    assert hub.put("b", type="stub", url=None, signing_secret=None)["unsigned"] is False, "nothing of it is ever signed"


def test_start_now_begins_at_the_head_of_every_ledger_that_is_new_to_the_target(hub: Hub) -> None:
    """D6"""
    hub.commit(events=3)
    hub.commit("sync#acme#other", events=2)
    hub.commit("delivery#else#team", events=2)
    one_team = {"contract": "delivery", "scope": "team"}
    hub.put(start="now", sources=[one_team])
    assert hub.positions.positions == {("acme#a", TEAM): Position(3)}
    hub.commit(events=4)
    hub.put(start="now", sources=[one_team, {"contract": "sync", "scope": "*"}])
    assert hub.positions.positions == {
        ("acme#a", TEAM): Position(3),
        ("acme#a", "sync#acme#other"): Position(2),
    }, "where it was it stays, or events between two puts would be lost"


def test_the_ids_of_several_journals_are_scoped_and_a_target_keeps_the_ids_it_is_known_for(hub: Hub) -> None:
    """D6: equal ids of two teams are two events; another id for the same event would be a third."""
    red, blue, sync = ({"contract": "delivery", "scope": "red"}, {"contract": "delivery", "scope": "blue"}, SYNC)
    assert hub.put("several", sources=[red, blue])["journal_ids"] == "scoped"
    assert hub.put("several", sources=[red])["journal_ids"] == "scoped"
    assert hub.put("none", sources=[sync])["journal_ids"] == "plain"
    assert hub.put("none", sources=[sync, red, blue])["journal_ids"] == "scoped"
    assert hub.put("one", sources=[red])["journal_ids"] == "plain"
    for several in ([red, blue], [{"contract": "delivery", "scope": "*"}]):
        with pytest.raises(BadRequest, match="ids of several would clash") as refused:
            hub.put("one", sources=several)
        assert refused.value.details["field"] == "sources"
    kept = hub.directory.get("acme", "several")
    assert kept is not None
    assert kept.target.target().scoped


def test_a_target_of_before_ids_were_scoped_goes_on_with_plain_ones(hub: Hub) -> None:
    hub.put()
    kept = hub.directory.get("acme", "a")
    assert kept is not None
    stored = {name: value for name, value in json.loads(kept.target.stored()).items() if name != "scoped"}
    old = HubTarget.of("acme", "a", json.dumps(stored), kept.target.sealed)
    assert old.scoped is False
    assert check_target("acme", "a", body(), old, 1, kinds=RECEIVERS, loopback=False).scoped is False


def test_a_put_lets_a_target_go_on_and_forgets_its_failures(hub: Hub) -> None:
    hub.put()
    hub.fare(TargetState(Circuit(9, 10**15), "answered 410: gone"))
    assert hub.targets.get(OPERATOR, "a")["paused_why"] == "answered 410: gone"
    with pytest.raises(Conflict):
        hub.targets.drain(OPERATOR, "a")
    told = hub.put()
    assert (told["paused"], told["failures_in_a_row"], told["revision"]) == (False, 0, 2)
    hub.wakes.sent.clear()
    assert hub.put(paused=True)["paused_why"] == "by an operator"
    assert hub.wakes.sent == []


def test_a_patch_changes_what_it_names_and_nothing_else(hub: Hub) -> None:
    """D6."""
    before = hub.put(families=["build."], mode="webhook", auth_secret="Basic abc")
    patched = hub.targets.patch(OPERATOR, "a", {"families": ["order."]})
    changed = {name for name in before if before[name] != patched[name]}
    assert changed == {"families", "revision"}
    assert hub.targets.patch(OPERATOR, "a", {"paused": True})["paused_why"] == "by an operator"
    assert hub.targets.patch(OPERATOR, "a", {"families": []})["paused"]
    hub.wakes.sent.clear()
    assert not hub.targets.patch(OPERATOR, "a", {"paused": False})["paused"]
    assert [(wake.target_id, wake.scan) for wake in hub.wakes.sent] == [("a", True)]


def test_a_patch_lets_a_target_that_the_hub_paused_go_on_only_if_it_says_so(hub: Hub) -> None:
    hub.put()
    hub.fare(TargetState(Circuit(9, 10**15), "answered 410: gone"))
    assert hub.targets.patch(OPERATOR, "a", {"families": ["order."]})["paused_why"] == "answered 410: gone"
    told = hub.targets.patch(OPERATOR, "a", {"paused": False})
    assert (told["paused"], told["failures_in_a_row"]) == (False, 0)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({}, "body"),
        ([], "body"),
        ({"colour": "red"}, "colour"),
        ({"paused": "yes"}, "paused"),
        ({"url": None}, "url"),
        ({"url": "https://example.org/other"}, "signing_secret"),
        ({"sources": []}, "sources"),
    ],
)
def test_a_bad_patch_names_its_field_and_changes_nothing(hub: Hub, change: Any, field: str) -> None:
    before = hub.put()
    with pytest.raises(BadRequest) as refused:
        hub.targets.patch(OPERATOR, "a", change)
    assert refused.value.details["field"] == field
    assert hub.targets.get(OPERATOR, "a") == before


def test_a_target_that_is_not_there_cannot_be_patched(hub: Hub) -> None:
    with pytest.raises(NotFound):
        hub.targets.patch(OPERATOR, "nobody", {"paused": True})


def test_a_target_that_changed_meanwhile_is_not_overwritten(hub: Hub) -> None:
    hub.put()
    first = hub.secrets

    class Slow(MemorySecrets):
        def seal(self, context: str, text: str) -> bytes:
            hub.secrets = first
            hub.put(paused=True)
            return first.seal(context, text)

        def open(self, context: str, sealed: bytes) -> str:
            return first.open(context, sealed)

    hub.secrets = Slow()
    with pytest.raises(Conflict):
        hub.put()


def test_only_operators_and_only_what_exists(hub: Hub) -> None:
    stranger = replace(OPERATOR, roles=frozenset({"producer", "consumer"}))
    asking: list[Callable[[], Any]] = [
        lambda: hub.targets.put(stranger, "a", body()),
        lambda: hub.targets.get(stranger, "a"),
        lambda: hub.targets.list(stranger),
        lambda: hub.targets.delete(stranger, "a"),
        lambda: hub.targets.drain(stranger, "a"),
    ]
    for ask in asking:
        with pytest.raises(Forbidden):
            ask()
    with pytest.raises(NotFound):
        hub.targets.get(OPERATOR, "a")
    assert hub.targets.delete(OPERATOR, "a") == {"deleted": False}
    hub.put()
    with pytest.raises(NotFound):
        hub.targets.get(replace(OPERATOR, tenant="else"), "a")
    assert hub.targets.delete(OPERATOR, "a") == {"deleted": True}


def test_loopback_is_refused_unless_the_machine_says_so(hub: Hub) -> None:
    """D12"""
    for url in ("http://127.0.0.1/", "https://127.0.0.1/", "https://[::1]/", "http://example.com/"):
        with pytest.raises(BadRequest):
            hub.put(url=url)
    allowed = replace(hub.targets, loopback=True)
    assert allowed.put(OPERATOR, "a", body(url="http://127.0.0.1:8000/x"))["url"] == "http://127.0.0.1:8000/x"


def test_a_grown_ledger_wakes_the_targets_that_hear_of_it(hub: Hub) -> None:
    hub.put("all")
    hub.put("team", sources=[{"contract": "delivery", "scope": "team"}])
    hub.put("sync", sources=[{"contract": "sync", "scope": "*"}])
    hub.put("paused", paused=True)
    hub.fare(TargetState(Circuit(5, 10**15)), "team")
    hub.wakes.sent.clear()
    ledgers = [TEAM, "delivery#acme#other", "delivery#else#team", "audit#acme", "sync#nobody#demo"]
    assert hub.wake_targets(ledgers) == 2
    assert hub.wakes.sent == [
        Wake("acme", "all", (TEAM, "delivery#acme#other")),
        Wake("acme", "team", (TEAM,)),
    ], "one left alone for now is woken too: it notes where it is behind"


def test_however_often_a_ledger_grows_a_target_has_one_wake_up_on_its_way(hub: Hub) -> None:
    """D6: the others cost a note. Once it may be lost, another one is sent."""
    hub.put(sources=[{"contract": "delivery", "scope": "*"}])
    hub.wakes.sent.clear()
    grown = [f"delivery#acme#team-{number}" for number in range(50)]
    for ledger in grown:
        hub.wake_targets([ledger])
    assert hub.wakes.sent == [Wake("acme", "a", (grown[0],))]
    kept = hub.directory.get("acme", "a")
    assert kept is not None
    assert set(hub.agenda.due(kept.target.target(), hub.clock(), 100)) == set(grown[1:])
    hub.clock.ahead(EXPECTED_MS)
    hub.wake_targets([TEAM])
    assert hub.wakes.sent[1:] == [Wake("acme", "a", (TEAM,))]


def test_many_ledgers_that_grow_at_once_are_noted_and_take_one_message(hub: Hub) -> None:
    hub.put(sources=[{"contract": "delivery", "scope": "*"}])
    hub.wakes.sent.clear()
    grown = [f"delivery#acme#team-{number}" for number in range(200)]
    assert hub.wake_targets(grown) == 1
    assert hub.wakes.sent == [Wake("acme", "a")]
    kept = hub.directory.get("acme", "a")
    assert kept is not None
    assert set(hub.agenda.due(kept.target.target(), hub.clock(), 1000)) == set(grown)


def test_a_target_that_is_served_gets_no_wake_up_and_its_drain_is_asked_to_look_again(hub: Hub) -> None:
    """D6"""
    hub.put(sources=[{"contract": "delivery", "scope": "*"}])
    hub.wakes.sent.clear()
    drain = DrainLease("acme", "a", "h", hub.clock(), hub.clock() + 9_000)
    hub.drains.take(drain, hub.clock())
    for _ in range(50):
        assert hub.wake_targets([TEAM]) == 0
    assert hub.wakes.sent == []
    assert hub.drains.end(drain) is True
    assert hub.wake_targets([TEAM]) == 1, "it has gone"


def test_a_wake_up_is_sent_if_nobody_can_say_whether_one_is_needed(hub: Hub) -> None:
    hub.put(sources=[{"contract": "delivery", "scope": "*"}])
    hub.wakes.sent.clear()

    class Broken(MemoryDrains):
        def expect(self, tenant: str, target_id: str, now_ms: int) -> Expected:
            raise Unavailable("no answer")

    hub.drains = Broken()
    with pytest.raises(Unavailable):
        hub.wake_targets([TEAM])
    assert hub.wakes.sent == [Wake("acme", "a", (TEAM,))]


def test_a_reminder_wakes_those_with_a_visit_due_that_can_be_tried(hub: Hub) -> None:
    for name in ("due", "idle", "open", "gone", "paused"):
        hub.put(name, paused=name == "paused")
    for name in ("due", "open", "gone", "paused"):
        kept = hub.directory.get("acme", name)
        assert kept is not None
        hub.agenda.note(kept.target.target(), [TEAM])
    hub.fare(TargetState(Circuit(5, hub.clock() + 1)), "open")
    hub.fare(TargetState(paused_why="gone"), "gone")
    hub.wakes.sent.clear()
    remind = RemindTargets(hub.directory, hub.agenda, hub.drains, hub.wakes, hub.clock, lambda: True)
    assert remind(Failures()) == 1
    assert hub.wakes.sent == [Wake("acme", "due")]
    hub.clock.ahead(1)
    remind(Failures())
    assert hub.wakes.sent[1:] == [Wake("acme", "due"), Wake("acme", "open")]
    hub.wakes.sent.clear()
    hub.agenda.visits.clear()
    hub.drains.take(DrainLease("acme", "idle", "h", 0, hub.clock() + 1), hub.clock())
    assert remind(Failures()) == 0, "a drain that lives needs no reminder"
    hub.clock.ahead(1)
    assert remind(Failures()) == 1
    assert hub.wakes.sent == [Wake("acme", "idle")], "one that died does"


def test_a_sweep_finds_what_nobody_rang_for_even_within_a_page(hub: Hub) -> None:
    hub.put()
    hub.put("paused", paused=True)
    hub.commit(events=5)
    hub.commit("delivery#acme#read", events=2)
    target = hub.directory.of("acme")[0].target.target()
    hub.positions.begin_at(target, TEAM, 4)
    hub.positions.begin_at(target, "delivery#acme#read", 2)
    hub.wakes.sent.clear()
    expect = ExpectDrain(hub.drains, hub.agenda, hub.clock)
    look = SweepTargets(hub.lag, hub.directory, expect, hub.wakes, 60_000, hub.clock)(Failures())
    assert look(list(hub.state.ledgers())) == 0, "it is not late yet"
    hub.clock.ahead(60_000)
    assert look(list(hub.state.ledgers())) == 1
    assert hub.wakes.sent == [Wake("acme", "a", (TEAM,))]


def test_retention_is_held_by_every_target_that_hears_of_a_ledger(hub: Hub) -> None:
    """C8"""
    held_by = HeldByTargets(hub.directory, hub.positions)
    assert held_by(TEAM) is None
    hub.put("a")
    hub.put("other", sources=[{"contract": "sync", "scope": "*"}])
    assert held_by(TEAM) == 0, "one that was never here holds all"
    target = hub.directory.of("acme")[0].target.target()
    hub.positions.begin_at(target, TEAM, 9)
    assert held_by(TEAM) == 9
    hub.positions.open_from[target.id, TEAM] = 4
    assert held_by(TEAM) == 3, "what will be tried again is needed"
    hub.put("slow", paused=True)
    assert held_by(TEAM) == 0, "a paused one holds too"
    hub.targets.delete(OPERATOR, "slow")
    assert held_by(TEAM) == 3
    assert held_by("delivery#else#team") is None


@dataclass
class OneDrain(MemoryLedger):
    """A ledger of one drain over journals in memory."""

    rung: tuple[str, ...] = ()
    left: set[str] = field(default_factory=set)

    @property
    def unfinished(self) -> Iterable[str]:
        return self.left

    def ledgers(self, target: Any, now_ms: int) -> Iterable[str]:
        self.left = set(self.rung)
        for ledger in self.rung:
            yield ledger
            self.left.discard(ledger)


@dataclass
class Drains:
    """`Deliver` on journals in memory."""

    hub: Hub
    receiver: Scripted = field(default_factory=Scripted)
    has_time: bool = True
    journals: dict[str, MemoryJournal] = field(default_factory=lambda: {TEAM: MemoryJournal()})
    ledger: OneDrain | None = None

    def __call__(self, wake: Wake) -> Any:
        hub = self.hub
        return Deliver(
            hub.directory,
            hub.directory.states,
            hub.agenda,
            hub.lag,
            hub.drains,
            TakeTurns(hub.drains, hub.line, hub.wakes, Shares(), hub.clock),
            hub.directory.states,
            hub.wakes,
            self._ledger,
            lambda _, may_send: Guarded(self.receiver, may_send),
            lambda _: nullcontext(),
            hub.clock,
            lambda: 0.0,
            lambda: "me",
            lambda: self.has_time,
            Schedule(),
            wait=hub.clock.ahead,
        )(wake)

    def _ledger(self, rung: tuple[str, ...], _go_on: Callable[[], bool], _hears: Callable[[str], bool]) -> OneDrain:
        if self.ledger is None:
            self.ledger = OneDrain(self.journals)
        self.ledger.rung, self.ledger.left = rung, set(rung)
        return self.ledger

    def capture(self, *ids: str) -> None:
        self.journals[TEAM].capture([(captured(event(id_)), Family.TEAMSPACE) for id_ in ids], 0)


@pytest.fixture
def drains(hub: Hub) -> Drains:
    hub.put()
    hub.fare(TargetState(quick=True))
    hub.wakes.sent.clear()
    made = Drains(hub)
    made.capture("e1", "e2")
    return made


RUNG = Wake("acme", "a", (TEAM,))


def test_a_wake_up_drains_the_ledgers_it_names(drains: Drains) -> None:
    assert drains(RUNG).drained.complete
    assert drains.receiver.sent == ["e1", "e2"]
    assert drains.hub.agenda.visits == set()
    assert drains.hub.wakes.sent == []


def test_a_rate_limit_holds_within_a_drain_and_from_one_to_the_next(drains: Drains) -> None:
    """D6"""
    hub, sent = drains.hub, list[tuple[int, int]]()
    hub.put(max_per_second=2)
    began = hub.clock()

    def timed(picks: Sequence[Pick]) -> Any:
        sent.append((hub.clock() - began, len(picks)))
        return accept(picks)

    drains.receiver.answers = [timed] * 9
    drains.capture("e3", "e4", "e5")
    assert drains(RUNG).drained.complete
    assert sent == [(0, 2), (1000, 2), (2000, 1)]
    drains.capture("e6")
    drains(RUNG)
    assert sent[3:] == [(2500, 1)], "the next drain goes on at the pace of the last"
    hub.clock.ahead(60_000)
    drains.capture("e7", "e8", "e9", "e10")
    drains(RUNG)
    assert [count for _, count in sent[4:]] == [2, 2], "time that went by unused is not saved up"
    assert sent[5][0] - sent[4][0] == 1000


def test_what_a_limited_target_was_not_sent_does_not_count(drains: Drains) -> None:
    drains.hub.put(max_per_second=0.1)
    drains.has_time = False
    drains(RUNG)
    assert drains.hub.directory.states.get("acme#a").next_send_ms == 0


@pytest.mark.parametrize("rate", [0, -1, 0.05, 10_001, True, "7", [1]])
def test_a_rate_that_is_none_is_refused(hub: Hub, rate: Any) -> None:
    with pytest.raises(BadRequest) as refused:
        hub.put(max_per_second=rate)
    assert refused.value.details["field"] == "max_per_second"


def test_a_rate_limit_is_set_kept_and_taken_away(hub: Hub) -> None:
    assert hub.put()["max_per_second"] is None
    assert hub.targets.patch(OPERATOR, "a", {"max_per_second": 2.5})["max_per_second"] == 2.5
    assert hub.targets.patch(OPERATOR, "a", {"families": ["a."]})["max_per_second"] == 2.5
    kept = hub.directory.get("acme", "a")
    assert kept is not None
    assert HubTarget.of("acme", "a", kept.target.stored(), kept.target.sealed) == kept.target
    assert hub.targets.patch(OPERATOR, "a", {"max_per_second": None})["max_per_second"] is None


def test_a_target_that_is_gone_or_paused_is_not_drained(drains: Drains) -> None:
    assert drains(Wake("acme", "nobody", (TEAM,))).drained is None
    drains.hub.put(paused=True)
    assert drains(RUNG).drained is None
    assert drains.receiver.sent == []


def test_what_a_failing_target_did_not_get_is_noted_and_not_rung_for_at_once(drains: Drains) -> None:
    drains.receiver.answers = [held("answered 500")]
    drains(RUNG)
    assert drains.hub.agenda.visits == {("acme#a", 0, TEAM)}
    assert drains.hub.wakes.sent == []
    drains.hub.fare(TargetState(Circuit(3, 10**15), quick=True))
    drains.hub.agenda.visits.clear()
    drains(RUNG)
    assert drains.hub.agenda.visits == {("acme#a", 0, TEAM)}, "left alone for now, it is still noted"


def test_a_drain_that_runs_out_of_time_rings_for_itself(drains: Drains) -> None:
    drains.has_time = False
    drains(RUNG)
    assert drains.receiver.sent == []
    assert drains.hub.agenda.visits == {("acme#a", 0, TEAM)}
    assert drains.hub.wakes.sent == [Wake("acme", "a")]


def test_a_drain_stops_soon_after_its_target_was_paused(drains: Drains) -> None:
    hub = drains.hub

    @dataclass
    class Pausing(Scripted):
        def deliver(self, picks: Sequence[Pick]) -> Any:
            hub.put(paused=True)
            hub.clock.ahead(10_000)
            return super().deliver(picks)

    drains.receiver = Pausing(most_events=1)
    drains(RUNG)
    assert drains.receiver.sent == ["e1"]


def test_a_scan_notes_every_ledger_the_target_is_behind_in(drains: Drains) -> None:
    drains.hub.commit()
    drains.hub.commit("delivery#acme#other")
    drains.hub.commit("sync#acme#demo")
    drains(Wake("acme", "a", scan=True))
    assert drains.hub.agenda.visits == {("acme#a", 0, TEAM), ("acme#a", 0, "delivery#acme#other")}


def test_a_storage_failure_leaves_a_note_and_is_told(drains: Drains) -> None:
    class Failing(Scripted):
        def deliver(self, picks: Sequence[Pick]) -> Any:
            raise Unavailable("Storage did not answer.")

    drains.receiver = Failing()
    assert drains(RUNG).failed.message == "Storage did not answer."
    assert drains.hub.drains.of("acme") == [], "its lease is given back"
    assert drains.hub.agenda.visits == {("acme#a", 0, TEAM)}


def operator(*partitions: str, projects: tuple[str, ...] = ()) -> Identity:
    return Identity("N", "acme", frozenset(projects), partitions, frozenset({"operator"}), "acme")


@pytest.mark.parametrize(
    ("source", "narrow", "wide"),
    [
        (("delivery", "team"), operator("team:other"), operator("team:team")),
        (("delivery", "te*"), operator("team:team"), operator("team:t*")),
        (("realtime", "s*"), operator("session:s1", "session:sx*"), operator("session:*")),
        (("streams", "rt/main"), operator("runtime:other"), operator("runtime:rt")),
        (("streams", "rt*"), operator("runtime:rt"), operator("runtime:rt*")),
        (("catalog", "orders"), operator("catalog:order"), operator("catalog:orders")),
        (("sync", "demo"), operator("p*", projects=("demo",)), operator("*", projects=("demo",))),
        (("sync", "demo"), operator("*", projects=("other",)), operator("*", projects=("d*",))),
        (("sync", "*"), operator("*", projects=("demo",)), operator("*", projects=("*",))),
    ],
)
def test_a_target_hears_only_of_what_its_operator_may_read(
    hub: Hub, source: tuple[str, str], narrow: Identity, wide: Identity
) -> None:
    """D6: for putting, reading, draining and deleting alike."""
    given = body(sources=[{"contract": source[0], "scope": source[1]}])
    with pytest.raises(Forbidden) as refused:
        hub.targets.put(narrow, "a", given)
    assert refused.value.details["field"] == "sources[0]"
    assert hub.directory.of("acme") == []
    hub.targets.put(wide, "a", given)
    attempts: list[Callable[[], Any]] = [
        lambda: hub.targets.put(narrow, "a", body(sources=[{"contract": "delivery", "scope": "mine"}])),
        lambda: hub.targets.get(narrow, "a"),
        lambda: hub.targets.drain(narrow, "a"),
        lambda: hub.targets.delete(narrow, "a"),
    ]
    for attempt in attempts:
        with pytest.raises(Forbidden):
            attempt()
    assert hub.targets.list(narrow) == {"targets": []}
    assert [one["target_id"] for one in hub.targets.list(wide)["targets"]] == ["a"]
    assert hub.targets.delete(wide, "a") == {"deleted": True}


def test_a_secret_is_not_sent_to_a_new_address(hub: Hub) -> None:
    hub.put(auth_secret="hush")
    elsewhere = "https://elsewhere.example.com/hook"
    for missing in ("auth_secret", "signing_secret"):
        given: dict[str, Any] = {"auth_secret": "hush", "signing_secret": secret("a"), missing: None}
        with pytest.raises(BadRequest) as refused:
            hub.put(url=elsewhere, **given)
        assert refused.value.details["field"] == missing
        assert "hush" not in refused.value.message
    assert hub.targets.get(OPERATOR, "a")["url"] == "https://example.com/hook", "nothing was changed"
    told = hub.put(url=elsewhere, auth_secret="", signing_secret=secret("b"))
    assert (told["has_auth_secret"], told["signing_secrets"]) == (False, 1), "no old secret signs for the new address"


def test_a_tenant_has_so_many_targets_and_no_more(hub: Hub) -> None:
    targets = replace(hub.targets, most_targets=2)
    for name in ("a", "b", "b"):
        targets.put(OPERATOR, name, body())
    with pytest.raises(TooManyTargets) as refused:
        targets.put(OPERATOR, "c", body())
    assert (refused.value.status, refused.value.code, refused.value.retry_after_ms) == (429, "rate_limited", 60_000)
    targets.put(replace(OPERATOR, tenant="other"), "c", body())
    targets.delete(OPERATOR, "a")
    targets.put(OPERATOR, "c", body())
