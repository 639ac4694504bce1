"""Each promise has a check that fails when it is broken: a checker that cannot fail proves nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.chaos.checks import PROMISES, broken
from tests.chaos.evidence import Delay, Delivered, Evidence, Size, TargetSeen, View
from tests.chaos.history import Answer, Fault, Post, Sight, tenants_in

OURS, THEIRS = "chaos00000000-a", "chaos00000000-b"
LEDGER = f"sync#{OURS}#orders"


def sight(position: int, id_: str, *tenants: str) -> Sight:
    return Sight(position, id_, frozenset(tenants or (OURS,)))


STORED = (sight(1, "e1"), sight(2, "e2"), sight(3, "e3"))
IDS = frozenset({"e1", "e2", "e3"})


def post(at: float, *ids: str, taken: bool = True, tenant: str = OURS) -> Post:
    return Post(at, ids, frozenset({tenant}), taken)


TARGET = TargetSeen(
    "steady",
    OURS,
    IDS,
    (post(1, "e1", "e2"), post(2, "e3", taken=False), post(3, "e3")),
    (Delivered("e1", "success", 1), Delivered("e2", "success", 1), Delivered("e3", "success", 2)),
)
GOOD = Evidence(
    answers=(Answer(LEDGER, "e1", 1), Answer(LEDGER, "e1", 1), Answer(LEDGER, "e2", 2), Answer(LEDGER, "e3")),
    log={LEDGER: STORED},
    views=(View("follower", OURS, LEDGER, STORED),),
    targets=(TARGET,),
    archive={LEDGER: STORED},
    delivered_after=59,
    delays=(Delay("broadcast", (0.1, 0.2), (0.5, 0.6)),),
    calls=Delay("a call of storage", (0.01,), (0.01,)),
    sizes=(Size("kills", 5, 5),),
)


SLOWER = Delay("a call of storage", (0.01, 0.02), (0.02, 0.04))


def seen(*sights: Sight) -> Evidence:
    return replace(GOOD, views=(View("follower", OURS, LEDGER, sights),))


def target(**changes: object) -> Evidence:
    return replace(GOOD, targets=(replace(TARGET, **changes),))  # type: ignore[arg-type]


def log(*sights: Sight) -> Evidence:
    return replace(GOOD, log={LEDGER: sights})


def archive(*sights: Sight) -> Evidence:
    return replace(GOOD, archive={LEDGER: sights})


E1, E2, E3 = STORED
DONE1, DONE2, DONE3 = TARGET.deliveries

BREACHES = {
    "acknowledged events are readable exactly once": {
        "lost": log(E1, E2),
        "its ledger is gone": replace(GOOD, log={}),
        "doubled": log(E1, E2, E3, sight(4, "e3")),
        "doubled, nobody was told": replace(log(E1, E2, E3, sight(4, "x"), sight(5, "x")), answers=()),
    },
    "positions are dense": {
        "a hole": log(E1, E2, sight(4, "e3")),
        "not from the start": log(sight(2, "e1"), sight(3, "e2"), sight(4, "e3")),
        "twice the same": log(E1, sight(1, "e2"), sight(2, "e3")),
        "out of order": log(E2, E1, E3),
    },
    "one id has one answer": {
        "another one later": replace(GOOD, answers=(*GOOD.answers, Answer(LEDGER, "e1", 2))),
        "always the wrong one": replace(GOOD, answers=(Answer(LEDGER, "e1", 3),)),
    },
    "good events are taken": {"refused": replace(GOOD, refused=("submit: 400",))},
    "readers and followers see the ledger": {
        "missed the last": seen(E1, E2),
        "missed one": seen(E1, E3),
        "saw one twice": seen(E1, E1, E2, E3),
        "in another order": seen(E2, E1, E3),
        "another event": seen(E1, sight(2, "x"), E3),
        "one too many": seen(E1, E2, E3, sight(4, "x")),
    },
    "targets have every event": {
        "never sent": target(posts=TARGET.posts[:1]),
        "never taken": target(posts=TARGET.posts[:2]),
        "one that it should not have": target(posts=(*TARGET.posts, post(4, "x"))),
    },
    "deliveries say what targets got": {
        "no delivery": target(deliveries=(DONE1, DONE2)),
        "two deliveries": target(deliveries=(DONE1, DONE1, DONE2, DONE3)),
        "a delivery of nothing": target(deliveries=(*TARGET.deliveries, Delivered("x", "success", 0))),
        "given up": target(deliveries=(DONE1, DONE2, Delivered("e3", "terminal_failed", 2))),
        "still to come": target(deliveries=(DONE1, DONE2, Delivered("e3", "transient", 1))),
        "requests that were never made": target(deliveries=(DONE1, DONE2, Delivered("e3", "success", 3))),
    },
    "doubles only where a request was in doubt": {
        "nothing had broken": target(posts=(*TARGET.posts, post(4, "e1"))),
        "what broke was over": replace(
            target(posts=(*TARGET.posts, post(4, "e3"))), faults=(Fault("killed deliver", 2.5, 2.6),)
        ),
        "what broke came later": replace(
            target(posts=(*TARGET.posts, post(4, "e3"))), faults=(Fault("killed deliver", 5, 5),)
        ),
        "a fault excuses one request": replace(
            target(posts=(*TARGET.posts, post(4, "e1", "e2"), post(5, "e3"))), faults=(Fault("pauses", 3.5, 3.6),)
        ),
        "and once": replace(
            target(posts=(*TARGET.posts, post(4, "e3"), post(5, "e3"))), faults=(Fault("pauses", 3.5, 3.6),)
        ),
    },
    "deliveries are complete in time": {
        "late": replace(GOOD, delivered_after=61),
        "never": replace(GOOD, delivered_after=math.inf),
    },
    "the archive is sound": {
        "verified, and unsound": replace(GOOD, archive_findings=("gaps",)),
        "lost": archive(E1, E3),
        "doubled": archive(E1, E2, E3, E3),
        "at another position": archive(E1, E2, sight(4, "e3")),
        "a ledger of its own": replace(GOOD, archive={**GOOD.archive, f"sync#{OURS}#x": (E1,)}),
    },
    "nothing leaks to another tenant": {
        "in a ledger": log(E1, E2, sight(3, "e3", THEIRS)),
        "in the archive": archive(E1, E2, sight(3, "e3", OURS, THEIRS)),
        "to a follower": seen(E1, E2, sight(3, "e3", THEIRS)),
        "to a target": target(posts=(*TARGET.posts, post(4, "e9", tenant=THEIRS))),
        "in an audit": replace(GOOD, log={f"audit#{OURS}": (Sight(1, "n", frozenset()), sight(2, "m", THEIRS))}),
        "whose it is cannot be said": seen(E1, E2, Sight(3, "e3", frozenset())),
    },
    "poison is refused": {
        "taken": replace(GOOD, poison_taken=("POST /v1/projects/x",)),
        "no answer even in peace": replace(GOOD, poison_unanswered=("POST /v1/projects/x",)),
        "left a ledger": replace(GOOD, strangers=(f"sync#{OURS}#poison",)),
    },
    "nobody else is delayed": {
        "four times as long": replace(GOOD, delays=(Delay("broadcast", (0.1, 0.2), (0.1, 0.8)),)),
        "never came": replace(GOOD, delays=(Delay("delivery", (0.1,), (math.inf,)),)),
        "more than storage": replace(GOOD, delays=(Delay("broadcast", (0.1,), (0.7,)),), calls=SLOWER),
        "storage never measured": replace(GOOD, calls=Delay("a call of storage", (0.01,), ())),
        "never measured": replace(GOOD, delays=(Delay("delivery", (), ()),)),
    },
    "the run was as large as asked": {"too few kills": replace(GOOD, sizes=(Size("kills", 5, 4),))},
}


def test_every_promise_has_its_breaches() -> None:
    assert BREACHES.keys() == PROMISES.keys()


def test_a_good_run_breaks_nothing() -> None:
    assert {name: found for name, found in broken(GOOD).items() if found} == {}


@pytest.mark.parametrize(
    ("promise", "evidence"),
    [pytest.param(name, one, id=f"{name}: {what}") for name, all_ in BREACHES.items() for what, one in all_.items()],
)
def test_a_broken_promise_is_found(promise: str, evidence: Evidence) -> None:
    assert broken(evidence)[promise]


def test_a_request_in_doubt_may_come_again() -> None:
    """Sent at 3, the sender was killed before it wrote that down; then the emulator stood still, and it came again."""
    again = target(posts=(*TARGET.posts, post(5, "e3"), post(8, "e3")))
    evidence = replace(again, faults=(Fault("killed deliver", 3.1, 3.1), Fault("pauses", 4, 6)))
    assert not broken(evidence)["doubles only where a request was in doubt"]


def test_what_is_only_reported_breaks_nothing() -> None:
    slow = replace(GOOD, delays=(Delay("broadcast", (0.1,), (9.0,)),), ratio=None)
    assert not broken(slow)["nobody else is delayed"]


def test_a_tenant_is_found_wherever_it_is_named() -> None:
    assert tenants_in({"a": [{"b": f"x{OURS}y"}], THEIRS: 1}) == {OURS, THEIRS}
    assert tenants_in({"a": "chaos"}) == frozenset()
