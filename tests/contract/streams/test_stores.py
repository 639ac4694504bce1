"""Runtimes, degraded subscriptions, rows, intents, raw values and streams, in memory and where they are stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest
from moto import mock_aws

from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.memory import MemoryState, in_turn
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.domain.names import Ledger, join_key, realtime_ledger, stream_ledger
from millrace.ledger.domain.page import Draft
from millrace.ledger.ports import State
from millrace.streams.adapters.dynamodb.raw_values import DynamoRawValues
from millrace.streams.adapters.dynamodb.rows import DynamoRows
from millrace.streams.adapters.dynamodb.runtimes import DynamoRuntimes
from millrace.streams.adapters.memory import MemoryRawValues, MemoryRows, MemoryRuntimes
from millrace.streams.domain.grant import BreakGlassGrant
from millrace.streams.domain.negotiate import CAPABILITIES, negotiate
from millrace.streams.ports import Announcement, Intent, RawEntry, RawValues, RuntimeState, VersionedRow
from tests.support.aws_tables import client_for, client_of, create_tables

STREAM = stream_ledger("t", "r", "s")
NOW_MS = 10_000
AGREED = negotiate({"supported_contract_versions": [2], "requested_capabilities": sorted(CAPABILITIES)})
GRANT = BreakGlassGrant("g1", "r", "me", "Gründe", ("s",), None, 1_000, 61_000, "ab" * 16)


@dataclass(frozen=True)
class Stores:
    kind: str
    state: State
    runtimes: MemoryRuntimes | DynamoRuntimes
    rows: MemoryRows | DynamoRows
    raw: RawValues


@pytest.fixture(scope="module", params=["memory", "moto", "embedded", "lean"])
def backend(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    """What the stores of each test stand on: one client for all of them."""
    if request.param == "moto":
        with mock_aws():
            yield "moto", client_for(None)
    else:
        yield request.param, None if request.param == "memory" else client_of(request)


@pytest.fixture
def stores(backend: tuple[str, Any]) -> Stores:
    kind, client = backend
    if kind == "memory":
        state = MemoryState()
        return Stores(kind, state, MemoryRuntimes(state, lambda: NOW_MS), MemoryRows(), MemoryRawValues())
    together = in_turn if kind == "moto" else Threads()
    tables = create_tables(client, ("State", "Diagnostics"))
    return Stores(
        kind,
        DynamoState(client, tables.state),
        DynamoRuntimes(client, tables.state, together, lambda: NOW_MS),
        DynamoRows(client, tables.state),
        DynamoRawValues(client, tables.diagnostics, together),
    )


def told(number: int) -> Announcement:
    draft = Draft(f"e{number}", bytes([number]) * 17, f'{{"n":"Ünï✓{number}"}}'.encode())
    return Announcement(STREAM, draft, "me")


def row(version: int, nonce: str = "", *, pending: bool = True, **content: Any) -> VersionedRow:
    return VersionedRow(
        version, content or {"n": version}, nonce or f"nonce-{version}", told(version) if pending else None
    )


def test_an_unknown_runtime_has_neither_agreement_nor_grants(stores: Stores) -> None:
    """T1."""
    assert _plain(stores.runtimes.load("t", "r", "c1")) == RuntimeState(None, ())


def test_what_is_negotiated_replaces_what_was_before(stores: Stores) -> None:
    """T5."""
    later = negotiate({"supported_contract_versions": [2], "limits": {"max_poll_events": 7}})
    for agreed in (AGREED, later):
        stores.runtimes.negotiate("t", "r", "c1", agreed)
        assert stores.runtimes.load("t", "r", "c1").negotiated == agreed


def test_each_client_of_a_runtime_has_a_negotiation_of_its_own(stores: Stores) -> None:
    """T5: grants are the runtime's, negotiations its clients'."""
    plain = negotiate({"supported_contract_versions": [2]})
    stores.runtimes.put_grant("t", GRANT)
    for client_id, agreed in (("c1", AGREED), ("c2", plain), ("grant#~", AGREED)):
        stores.runtimes.negotiate("t", "r", client_id, agreed)
    for client_id, expected in (("c1", AGREED), ("c2", plain), ("grant#~", AGREED), ("c", None), ("C1", None)):
        assert _plain(stores.runtimes.load("t", "r", client_id)) == RuntimeState(expected, (GRANT,))
        assert stores.runtimes.session("t", "r", client_id) == expected
        assert stores.runtimes.session("t", "r2", client_id) is None
    assert stores.runtimes.grants("t", "r") == [GRANT]


def test_negotiations_of_a_runtime_are_told_in_order_and_go_on_after_a_client(stores: Stores) -> None:
    """T5"""
    plain = negotiate({"supported_contract_versions": [2]})
    stores.runtimes.put_grant("t", GRANT)
    for client_id, agreed in (("c2", plain), ("c1", AGREED), ("grant#~", AGREED), ("ü", plain)):
        stores.runtimes.negotiate("t", "r", client_id, agreed)
    stores.runtimes.negotiate("t", "r2", "c3", AGREED)
    stores.runtimes.negotiate("t2", "r", "c4", AGREED)
    every = [("c1", AGREED), ("c2", plain), ("grant#~", AGREED), ("ü", plain)]
    for after in range(len(every) + 1):
        last = every[after - 1][0] if after else ""
        for limit in (1, 2, 9):
            assert stores.runtimes.negotiated_after("t", "r", last, limit) == every[after : after + limit]


def test_what_earlier_releases_stored_for_a_whole_runtime_holds_for_clients_without_their_own(stores: Stores) -> None:
    """T5."""
    plain = negotiate({"supported_contract_versions": [2]})
    if isinstance(stores.runtimes, DynamoRuntimes):
        content = json.dumps(plain.stored(), separators=(",", ":"))
        item = {"p": {"S": join_key("runtime", "t", "r")}, "s": {"S": "~negotiated"}, "d": {"S": content}}
        stores.runtimes.client.put_item(TableName=stores.runtimes.table, Item=item)
    else:
        stores.runtimes.negotiated["t", "r", None] = plain
    stores.runtimes.negotiate("t", "r", "c1", AGREED)
    for client_id, expected in (("c1", AGREED), ("c2", plain)):
        assert stores.runtimes.load("t", "r", client_id).negotiated == expected
        assert stores.runtimes.session("t", "r", client_id) == expected


def test_grants_are_stored_beside_it_and_keep_what_became_of_them(stores: Stores) -> None:
    """P4."""
    stores.runtimes.negotiate("t", "r", "c1", AGREED)
    other = replace(GRANT, id="g2", streams=None, fields=("peer_id", "x"))
    for grant in (GRANT, other, GRANT.revoked(5_000)):
        stores.runtimes.put_grant("t", grant)
    assert _plain(stores.runtimes.load("t", "r", "c1")) == RuntimeState(AGREED, (GRANT.revoked(5_000), other))


def test_a_grant_whose_time_is_over_is_listed_but_costs_no_emission_anything(stores: Stores) -> None:
    """P4."""
    stores.runtimes.negotiate("t", "r", "c1", AGREED)
    old = replace(GRANT, id="g0", created_ms=1, expires_ms=NOW_MS - 1)
    for grant in (old, GRANT):
        stores.runtimes.put_grant("t", grant)
    assert _plain(stores.runtimes.load("t", "r", "c1")) == RuntimeState(AGREED, (GRANT,))
    assert sorted(stores.runtimes.grants("t", "r"), key=lambda grant: grant.id) == [old, GRANT]


def test_runtimes_with_telling_names_are_kept_apart(stores: Stores) -> None:
    """T5."""
    stores.runtimes.negotiate("a#b", "c", "c1", AGREED)
    stores.runtimes.put_grant("a", replace(GRANT, runtime_id="b"))
    for tenant, runtime_id in (("a", "b#c"), ("a", "b%23c"), ("a%23b", "c"), ("t", "r")):
        assert stores.runtimes.load(tenant, runtime_id, "c1") == RuntimeState(None, [])
    assert stores.runtimes.load("a#b", "c", "c1").negotiated == AGREED


def test_a_subscription_is_marked_once(stores: Stores) -> None:
    """T9."""
    assert not stores.runtimes.is_marked(STREAM, "x")
    assert stores.runtimes.mark(STREAM, "x")
    assert not stores.runtimes.mark(STREAM, "x")
    assert stores.runtimes.is_marked(STREAM, "x")
    for stream, subscription in ((STREAM, "y"), (stream_ledger("t", "r", "s2"), "x")):
        assert not stores.runtimes.is_marked(stream, subscription)


def test_marked_subscriptions_are_listed_in_order_some_at_a_time(stores: Stores) -> None:
    """T9."""
    for name in ("c", "a", "b"):
        stores.runtimes.mark(STREAM, name)
    stores.runtimes.mark(stream_ledger("t", "r", "s2"), "x")
    assert list(stores.runtimes.degraded_after(STREAM, "", 2)) == ["a", "b"]
    assert list(stores.runtimes.degraded_after(STREAM, "b", 2)) == ["c"]
    assert list(stores.runtimes.degraded_after(stream_ledger("t", "r", "s3"), "", 2)) == []


def test_of_many_that_mark_at_once_one_was_the_first(stores: Stores) -> None:
    """T9."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: stores.runtimes.mark(STREAM, "x"), range(16)))
    assert answers.count(True) == 1


def test_a_runtimes_streams_are_found_by_name_and_no_others(stores: Stores) -> None:
    """T11."""
    mine = [stream_ledger("t", "r", f"s{n:02}") for n in range(30)]
    others = [
        stream_ledger("t", "r2", "s"),
        stream_ledger("t2", "r", "s"),
        stream_ledger("t", "r#x", "s"),
        realtime_ledger("t", "r"),
        Ledger.of("sync", "t", "r"),
    ]
    for ledger in [*reversed(mine), *others]:
        stores.state.register(ledger)
    assert list(stores.runtimes.of_runtime("t", "r")) == mine
    assert list(stores.runtimes.of_runtime("t", "r#x")) == [others[2]]
    assert list(stores.runtimes.of_runtime("t", "none")) == []


def test_a_row_changes_by_one_version_at_a_time(stores: Stores) -> None:
    """T4, M1: whoever expects another one gets the stored row."""
    assert stores.rows.get("g", "k") is None
    first, second = row(1, deep={"Ünï": [1, 2.5, None, "✓"]}), row(2)
    assert stores.rows.put("g", "k", first) is None
    assert stores.rows.get("g", "k") == first
    assert stores.rows.put("g", "k", row(1, "other")) == first
    assert stores.rows.put("g", "k", row(3)) == first
    assert stores.rows.put("g", "k", second) is None
    assert stores.rows.put("g", "k", row(2, "other")) == second
    assert stores.rows.get("g", "k") == second


def test_a_write_whose_answer_was_lost_finds_its_own_nonce(stores: Stores) -> None:
    """T4."""
    stores.rows.put("g", "k", row(1, "mine"))
    winner = stores.rows.put("g", "k", row(1, "mine"))
    assert winner is not None
    assert winner.nonce == "mine"


def test_a_row_remembers_the_writers_before_its_last_one(stores: Stores) -> None:
    """T4: so that a late retry of the storage client itself is known for what it is."""
    written = replace(row(1), trail=("n-2", "n-1"))
    stores.rows.put("g", "k", written)
    assert stores.rows.get("g", "k") == written
    late = stores.rows.put("g", "k", row(1, "n-1"))
    assert late is not None
    assert list(late.nonces) == ["n-2", "n-1", "nonce-1"]
    stores.rows.settle("g", "k", 1)
    assert stores.rows.get("g", "k") == replace(written, pending=None)


def test_a_row_that_is_not_there_cannot_be_at_a_later_version(stores: Stores) -> None:
    """T4: that is no success."""
    winner = stores.rows.put("g", "k", row(2))
    assert winner is not None
    assert winner.version == 0
    assert stores.rows.get("g", "k") is None


def test_a_pending_event_stays_until_it_is_settled_at_its_version(stores: Stores) -> None:
    """M5."""
    stores.rows.put("g", "k", row(1))
    stores.rows.put("g", "k", row(2))
    stores.rows.settle("g", "k", 1)
    assert stores.rows.get("g", "k") == row(2), "another version's event is not forgotten"
    for _ in range(2):
        stores.rows.settle("g", "k", 2)
        assert stores.rows.get("g", "k") == row(2, pending=False)
    stores.rows.settle("g", "never", 1)
    assert stores.rows.get("g", "never") is None
    assert stores.rows.put("g", "k", row(3, pending=False)) is None


def test_of_many_writers_of_a_version_one_wins(stores: Stores) -> None:
    """T4, M1."""
    with ThreadPoolExecutor(8) as pool:
        winners = list(pool.map(lambda n: stores.rows.put("g", "k", row(1, f"n{n}")), range(12)))
    assert winners.count(None) == 1
    stored = stores.rows.get("g", "k")
    assert all(winner in (None, stored) for winner in winners)
    assert stored is not None
    assert stored.nonce == f"n{winners.index(None)}"


def test_rows_are_paged_in_order_of_their_keys(stores: Stores) -> None:
    """M4: across the whole of Unicode; only the last page is short."""
    keys = sorted([f"k{n:02}" for n in range(20)] + ["a", "Z", "ä", "✓", "\ufffd", "🔑"], key=str.encode)
    for key in reversed(keys):
        stores.rows.put("g", key, row(1, key))
    stores.rows.put("g2", "b", row(1))
    for limit in (7, 26, 100):
        seen, after = list[str](), ""
        while page := stores.rows.page("g", after, limit):
            assert len(page) == min(limit, len(keys) - len(seen))
            assert [(key, row(1, key)) for key, _ in page] == list(page)
            seen += [key for key, _ in page]
            after = seen[-1]
        assert seen == keys


def test_a_page_is_full_also_when_its_rows_are_large(stores: Stores) -> None:
    """M4: a store may answer in pieces."""
    for n in range(12):
        stores.rows.put("g", f"k{n:02}", VersionedRow(1, {"pad": "x" * 150_000}, f"n{n}"))
    assert [key for key, _ in stores.rows.page("g", "", 11)] == [f"k{n:02}" for n in range(11)]
    assert [key for key, _ in stores.rows.page("g", "k08", 11)] == ["k09", "k10", "k11"]


def test_groups_with_telling_names_are_kept_apart(stores: Stores) -> None:
    """T4."""
    stores.rows.put("g", "k#x", row(1))
    assert stores.rows.get("g#k", "x") is None
    assert stores.rows.page("g#k", "", 5) == []


def test_an_intent_is_found_by_its_age_until_it_is_cleared(stores: Stores) -> None:
    """M5."""
    old, young = Intent("g#1", "k", "n1"), Intent("g#1", "k", "n2")
    stores.rows.leave(old, 1_000)
    stores.rows.leave(young, 2_000)
    assert list(stores.rows.left_before(1_000)) == []
    assert list(stores.rows.left_before(1_001)) == [old]
    for _ in range(2):
        stores.rows.clear(old)
    assert list(stores.rows.left_before(9_999)) == [young]
    stores.rows.clear(young)
    assert list(stores.rows.left_before(9_999)) == []


def test_many_intents_with_telling_names_are_all_found(stores: Stores) -> None:
    """M5: and none is taken for a row."""
    intents = [Intent(f"g{n % 3}#%", f"k#{n}", f"n{n}") for n in range(40)]
    for intent in intents:
        stores.rows.leave(intent, 5)
    assert set(stores.rows.left_before(6)) == set(intents)
    assert stores.rows.page("g0#%", "", 5) == []


def entry(position: int, stream: str = "s", sealed: bytes = b"\x00sealed") -> RawEntry:
    return RawEntry(stream, f"e{position}", position, sealed)


def pages(stores: Stores, grant_id: str, limit: int) -> list[RawEntry]:
    seen, after = list[RawEntry](), ""
    for _ in range(100):
        found, following = stores.raw.page(grant_id, after, limit)
        assert len(found) <= limit
        seen += found
        if following is None:
            return seen
        assert following > after
        after = following
    raise AssertionError("the pages do not end")


def test_raw_values_are_paged_by_stream_and_position(stores: Stores) -> None:
    """P4: ten comes after nine."""
    kept = [*(entry(n) for n in range(5, 15)), entry(1, "s#2"), entry(2, "ü"), entry(10**15, "ü")]
    stores.raw.keep("g1", list(reversed(kept)), 61_000)
    stores.raw.keep("g2", [entry(99)], 61_000)
    by_place = sorted(kept, key=lambda one: (one.stream_id, one.position))
    for limit in (1, 4, 13, 50):
        seen = pages(stores, "g1", limit)
        assert sorted(seen, key=lambda one: (one.stream_id, one.position)) == by_place
        for stream in ("s", "ü"):
            positions = [one.position for one in seen if one.stream_id == stream]
            assert positions == sorted(positions)
    assert pages(stores, "none", 5) == []


def test_the_same_entry_again_changes_nothing(stores: Stores) -> None:
    """P4: a repeated event cannot replace what its first emission left, though it is sealed anew."""
    stores.raw.keep("g", [entry(1), entry(2)], 61_000)
    stores.raw.keep("g", [entry(1, sealed=b"again"), entry(3)], 99_000)
    assert pages(stores, "g", 10) == [entry(1), entry(2), entry(3)]


def test_what_is_stored_expires_by_itself_too(stores: Stores) -> None:
    """P4: after the grant has ended; the check on read does not wait for it."""
    stores.raw.keep("g", [entry(1)], 61_999)
    if isinstance(stores.raw, DynamoRawValues):
        (item,) = stores.raw.client.scan(TableName=stores.raw.table)["Items"]
        assert item["ttl"] == {"N": "61"}
    assert pages(stores, "g", 1) == [entry(1)], "a time to live alone hides nothing"


def test_a_row_is_restored_only_over_an_older_one(stores: Stores) -> None:
    """M1: at its own version, whatever is missing below it."""
    assert stores.rows.restore("g", "restored", row(7, pending=False))
    assert stores.rows.get("g", "restored") == row(7, pending=False)
    assert not stores.rows.restore("g", "restored", row(7, "other"))
    assert not stores.rows.restore("g", "restored", row(6))
    assert stores.rows.put("g", "restored", row(8)) is None
    assert stores.rows.restore("g", "restored", row(9, pending=False))


def _plain(runtime: RuntimeState) -> RuntimeState:
    return RuntimeState(runtime.negotiated, tuple(sorted(runtime.grants, key=lambda grant: grant.id)))
