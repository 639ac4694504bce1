"""What operators do is recorded before it is done and when it has ended, and shown to those whom it concerns."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryState, in_turn
from millrace.ledger.application.audit import EVERY, AuditFilter, AuditLedger
from millrace.ledger.application.audited import Audited
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import Conflict, Forbidden, MillraceError, Unavailable

OPERATOR = Identity("ops", "acme", frozenset({"demo"}), ("*",), frozenset({"operator"}), "acme")
NARROW = Identity("narrow", "acme", frozenset({"other"}), ("runtime:rt-1",), frozenset({"operator"}), "acme")
READER = Identity("reader", "acme", frozenset({"demo"}), ("*",), frozenset({"consumer"}), "acme")


@dataclass
class World:
    now: int = 1_000
    ids: int = 0
    claims: MemoryClaims = field(default_factory=MemoryClaims)
    log: MemoryLog = field(default_factory=MemoryLog)
    state: MemoryState = field(default_factory=MemoryState)

    def clock(self) -> int:
        self.now += 1
        return self.now

    def new_id(self) -> str:
        self.ids += 1
        return f"id-{self.ids}"

    def audit(self) -> AuditLedger:
        heads = Heads(self.clock)
        commit = Commit(
            claims=self.claims,
            log=self.log,
            state=self.state,
            heads=heads,
            together=in_turn,
            clock=self.clock,
            nonce=lambda: self.new_id().encode(),
            pause=lambda _: None,
        )
        return AuditLedger(commit, self.log, self.state, heads, in_turn, self.clock, self.new_id)

    def do(self, who: Identity, action: str = "target_put", act: Callable[[], Any] = dict, **subject: str) -> Any:
        return Audited(self.audit())(who, action, act, **subject)

    def entries(self, who: Identity = OPERATOR, wanted: AuditFilter = EVERY) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.audit().read(who, 0, 100, wanted)["events"]
        return found


def raising(error: Exception) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


def test_an_action_is_recorded_before_it_is_done_and_when_it_is_done() -> None:
    world = World()

    def act() -> list[str]:
        return [entry["outcome"] for entry in world.entries()]

    assert world.do(OPERATOR, act=act, target_id="hub") == ["begun"]
    begun, done = world.entries()
    assert (begun["outcome"], done["outcome"]) == ("begun", "done")
    assert begun["action_id"] == done["action_id"]
    assert (done["who"], done["action"], done["target_id"]) == ("ops", "target_put", "hub")


@pytest.mark.parametrize(
    ("error", "outcome", "code"),
    [
        (Conflict("A secret value 42."), "refused", "conflict"),
        (Forbidden("No."), "refused", "forbidden"),
        (Unavailable("Storage is away."), "failed", "server_error"),
        (RuntimeError("A bug with a secret value 42."), "failed", "server_error"),
    ],
)
def test_what_was_refused_or_failed_is_recorded_with_its_code_and_without_its_words(
    error: Exception, outcome: str, code: str
) -> None:
    world = World()
    with pytest.raises(type(error)):
        world.do(OPERATOR, act=raising(error), target_id="hub")
    begun, ended = world.entries()
    assert (ended["outcome"], ended["code"]) == (outcome, code)
    assert "42" not in json.dumps([begun, ended])


def test_a_process_that_dies_in_between_leaves_what_it_had_begun() -> None:
    world = World()
    with pytest.raises(KeyboardInterrupt):
        world.do(OPERATOR, act=raising(KeyboardInterrupt()), target_id="hub")  # type: ignore[arg-type]
    (begun,) = world.entries()
    assert begun["outcome"] == "begun"


def test_what_cannot_be_recorded_is_not_done() -> None:
    world = World()
    done: list[int] = []

    class Away(MemoryLog):
        def append(self, ledger: Any, page: Any) -> Any:
            raise Unavailable("The log is away.")

    world.log = Away()
    with pytest.raises(MillraceError):
        world.do(OPERATOR, act=lambda: done.append(1))
    assert done == []


def test_who_is_no_operator_fills_no_audit() -> None:
    world = World()
    with pytest.raises(Forbidden):
        world.do(READER, act=raising(Forbidden("No operator.")), target_id="hub")
    assert world.entries() == []


def test_an_entry_is_shown_to_those_who_reach_what_it_names() -> None:
    world = World()
    world.do(OPERATOR, "retention_set", project="demo")
    world.do(OPERATOR, "target_put", target_id="hub")
    world.do(OPERATOR, "quarantine_repair", partition="catalog:orders")
    world.do(OPERATOR, "grant_made", runtime_id="rt-1")
    world.do(NARROW, "target_put", target_id="mine")
    assert {(entry["who"], entry["action"]) for entry in world.entries(NARROW)} == {("ops", "grant_made")}
    assert {entry["action"] for entry in world.entries(OPERATOR)} == {
        "retention_set",
        "target_put",
        "quarantine_repair",
        "grant_made",
    }


def test_entries_are_chosen_by_action_client_and_time() -> None:
    world = World()
    world.do(OPERATOR, "target_put", target_id="hub")
    middle = world.now
    world.do(NARROW, "target_put", target_id="hub")
    world.do(OPERATOR, "target_delete", target_id="hub")
    assert [one["position"] for one in world.entries(wanted=AuditFilter(action="target_delete"))] == [5, 6]
    assert [one["position"] for one in world.entries(wanted=AuditFilter(client="narrow"))] == [3, 4]
    assert [one["position"] for one in world.entries(wanted=AuditFilter(since_ms=middle + 1))] == [3, 4, 5, 6]


def test_the_newest_first_pages_back_to_the_beginning_without_a_hole() -> None:
    world = World()
    for number in range(5):
        world.do(OPERATOR, "target_put", target_id=f"hub-{number}")
    positions: list[int] = []
    before: int | None = None
    while before != 0:
        page = world.audit().newest_first(OPERATOR, before, 3)
        positions += [entry["position"] for entry in page["events"]]
        before = page["next_before"]
    assert positions == list(range(10, 0, -1))


def test_a_name_that_is_none_is_clipped() -> None:
    world = World()
    world.do(OPERATOR, target_id="x" * 100_000 + "\ud800")
    assert len(world.entries()[0]["target_id"]) == 512
