from __future__ import annotations

import pytest

from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Claim
from tests.contract.conftest import Adapters

A, NONE = frozenset({"a"}), frozenset[str]()
ONE = Ledger.of("sync", "default", "demo")
OTHER_SAME_SCOPE = Ledger("sync#default#other", ONE.dedupe_scope)
OTHER_SCOPE = Ledger.of("sync", "default", "third")


def test_a_claim_is_created_once(adapters: Adapters) -> None:
    first = adapters.claims.create(ONE, ["a"], seen=0)
    again = adapters.claims.create(ONE, ["a"], seen=7)
    assert (first.created, first.existed, first.failed) == (A, NONE, NONE)
    assert (again.created, again.existed, again.failed) == (NONE, A, NONE)
    assert adapters.claims.get(ONE, ["a"]) == {"a": Claim(ONE.name, 0)}


def test_many_claims_are_answered_one_by_one(batching: Adapters) -> None:
    ids = [f"e{n}" for n in range(60)]
    batching.claims.create(ONE, ids[10:20], seen=0)
    claimed = batching.claims.create(ONE, ids, seen=3)
    assert claimed.existed == set(ids[10:20])
    assert claimed.created == set(ids) - set(ids[10:20])
    assert not claimed.failed
    assert {claim.seen for claim in batching.claims.get(ONE, ids[10:20]).values()} == {0}
    assert batching.claims.get(ONE, ids).keys() == set(ids)


def test_ledgers_of_one_dedupe_scope_share_claims_and_others_do_not(adapters: Adapters) -> None:
    adapters.claims.create(ONE, ["a"], seen=0)
    assert adapters.claims.create(OTHER_SAME_SCOPE, ["a"], seen=0).existed == {"a"}
    assert adapters.claims.get(OTHER_SAME_SCOPE, ["a"])["a"].ledger == ONE.name
    assert adapters.claims.create(OTHER_SCOPE, ["a"], seen=0).created == {"a"}


def test_seen_moves_up_and_never_down(adapters: Adapters) -> None:
    adapters.claims.create(ONE, ["a"], seen=5)
    adapters.claims.advance(ONE, ["a"], seen=9)
    adapters.claims.advance(ONE, ["a"], seen=7)
    assert adapters.claims.get(ONE, ["a"])["a"].seen == 9


def test_an_advance_leaves_another_ledgers_claim_alone(adapters: Adapters) -> None:
    adapters.claims.create(ONE, ["a"], seen=5)
    adapters.claims.advance(OTHER_SAME_SCOPE, ["a"], seen=9)
    assert adapters.claims.get(ONE, ["a"])["a"].seen == 5


@pytest.mark.parametrize("id_", ["a#b", "%23", "x" * 1024, "é\u0000\n", "'; DROP", '"'])
def test_any_id_can_be_claimed(adapters: Adapters, id_: str) -> None:
    assert adapters.claims.create(ONE, [id_], seen=0).created == {id_}
    assert adapters.claims.create(ONE, [id_], seen=0).existed == {id_}
    assert adapters.claims.get(ONE, [id_]).keys() == {id_}
