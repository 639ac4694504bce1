"""The use cases on every adapter: what the simulator proves in memory also holds where it is stored."""

from __future__ import annotations

import itertools
import os

import pytest

from millrace.ledger.adapters.memory import MemoryDoorbell
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.failures import Failures
from millrace.ledger.application.heads import Heads
from millrace.ledger.application.prune import Prune
from millrace.ledger.application.sweep import Sweep, Watch
from millrace.ledger.domain.canonical import digest
from millrace.ledger.domain.consumers import INDEX_CONSUMER
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Origin
from millrace.sync.application.index_partitions import IndexPartitions
from millrace.sync.application.sync import Sync
from tests.contract.conftest import Adapters

LEDGER = Ledger.of("sync", "default", "demo")
ROOM = 4_000_000


def draft(number: int, content: str = "x", size: int = 0) -> Draft:
    body = b'{"event":{"type":"t","payload":"%s"}}' % (content.encode() + b"y" * size)
    return Draft(f"e{number}", digest(body), body, (f"p{number % 3}",))


def commit(adapters: Adapters, heads: Heads | None = None) -> Commit:
    clock = itertools.count(1_000).__next__
    return Commit(
        adapters.claims,
        adapters.log,
        adapters.state,
        heads or Heads(clock),
        adapters.together,
        clock,
        lambda: os.urandom(12),
        lambda attempt: None,
    )


def sync(adapters: Adapters, direct_span: int = 0) -> Sync:
    return Sync(adapters.log, adapters.state, adapters.index, Heads(lambda: 0), adapters.together, direct_span)


def commit_one_by_one(adapters: Adapters, count: int) -> None:
    """Single events, so that moto can play too."""
    committing = commit(adapters)
    for number in range(count):
        committing(LEDGER, [draft(number)], Origin("c"))


def test_s5_the_same_event_again_keeps_its_first_result(adapters: Adapters) -> None:
    first = commit(adapters)(LEDGER, [draft(1)], Origin("c"))[0]
    again = commit(adapters)(LEDGER, [draft(1)], Origin("other"))[0]
    assert (first.position, first.fresh) == (1, True)
    assert (again.position, again.time_ms, again.fresh) == (1, first.time_ms, False)
    assert commit(adapters)(LEDGER, [draft(2)], Origin("c"))[0].position == 2


def test_s5_other_content_under_a_used_id_is_a_conflict_and_burns_no_position(adapters: Adapters) -> None:
    commit(adapters)(LEDGER, [draft(1)], Origin("c"))
    assert commit(adapters)(LEDGER, [draft(1, "other")], Origin("c"))[0].conflict
    assert commit(adapters)(LEDGER, [draft(2)], Origin("c"))[0].position == 2


def test_s5_dedupe_holds_after_pruning(adapters: Adapters) -> None:
    commit_one_by_one(adapters, 3)
    IndexPartitions(adapters.log, adapters.state, adapters.index, lambda: True)(LEDGER)
    assert Prune(adapters.log, adapters.state, (INDEX_CONSUMER,))(LEDGER, 2).removed == 2
    assert commit(adapters)(LEDGER, [draft(0)], Origin("c"))[0].position == 1
    assert commit(adapters)(LEDGER, [draft(1, "other")], Origin("c"))[0].conflict
    page = sync(adapters)(LEDGER, None, 0, 500, ROOM)
    assert [event.position for event in page.events] == [3]
    assert page.pruned_through == 2


PRUNED_SYNCS = [None, ["p0"], ["p1"], ["p0", "p2"], ["nobody"]]


def lost(since: int, through: int, partitions: list[str] | None) -> int | None:
    """S6 as a plain model: the last position above the cursor that went and was of one of these partitions."""
    gone = [n + 1 for n in range(through) if partitions is None or f"p{n % 3}" in partitions]
    return max((position for position in gone if position > since), default=None)


@pytest.mark.parametrize("indexed", [[7], [3, 7], [1, 2, 3, 4, 5, 6, 7]])
def test_s6_only_a_partition_that_lost_something_is_told_of_pruning(adapters: Adapters, indexed: list[int]) -> None:
    """Whatever the runs of the indexer were, from every cursor, through the index and without it."""
    for count in indexed:
        commit_one_by_one(adapters, count)
        IndexPartitions(adapters.log, adapters.state, adapters.index, lambda: True)(LEDGER)
    assert Prune(adapters.log, adapters.state, (INDEX_CONSUMER,))(LEDGER, 5).complete
    for span in (0, 1000):
        for since in range(8):
            for partitions in PRUNED_SYNCS:
                page = sync(adapters, span)(LEDGER, partitions, since, 500, ROOM)
                wanted = [n + 1 for n in (5, 6) if n >= since and (partitions is None or f"p{n % 3}" in partitions)]
                assert [event.position for event in page.events] == wanted
                assert page.pruned_through == lost(since, 5, partitions), (since, partitions)


@pytest.mark.parametrize("adapters", ["memory"], indirect=True)
@pytest.mark.parametrize("indexed", [0, 2])
def test_s6_pruning_is_told_right_while_the_index_is_behind_the_floor(adapters: Adapters, indexed: int) -> None:
    """As after State and the index were lost and are built anew: the emptied pages themselves tell."""
    commit_one_by_one(adapters, indexed)
    IndexPartitions(adapters.log, adapters.state, adapters.index, lambda: True)(LEDGER)
    commit_one_by_one(adapters, 7)
    assert Prune(adapters.log, adapters.state, ())(LEDGER, 5).removed == 5
    for since in range(8):
        for partitions in PRUNED_SYNCS:
            page = sync(adapters)(LEDGER, partitions, since, 500, ROOM)
            assert page.pruned_through == lost(since, 5, partitions), (since, partitions)


def test_a_batch_is_committed_in_order_and_mixed_with_duplicates(batching: Adapters) -> None:
    commit(batching)(LEDGER, [draft(n) for n in (3, 5)], Origin("c"))
    outcomes = commit(batching)(LEDGER, [draft(n) for n in range(120)], Origin("c"))
    assert [o.position for o in outcomes] == [3, 4, 5, 1, 6, 2, *range(7, 121)]
    assert [n for n, o in enumerate(outcomes) if not o.fresh] == [3, 5]


def test_large_batches_are_chunked_into_pages_that_fit(batching: Adapters) -> None:
    outcomes = commit(batching)(LEDGER, [draft(n, os.urandom(40_000).hex()) for n in range(10)], Origin("c"))
    assert [o.position for o in outcomes] == list(range(1, 11))
    assert len(batching.log.read(LEDGER, 0).pages) == 3


def test_an_event_that_cannot_fit_is_refused_before_it_is_claimed(adapters: Adapters) -> None:
    with pytest.raises(BadRequest):
        commit(adapters)(LEDGER, [draft(1, size=400_000)], Origin("c"))
    assert adapters.claims.create(LEDGER, ["e1"], 0).created == {"e1"}


@pytest.mark.parametrize("indexed", [0, 7, 20])
@pytest.mark.parametrize("partitions", [None, ["p1"], ["p0", "p2"]])
def test_s6_a_sync_gives_every_matching_event_in_order(
    adapters: Adapters, indexed: int, partitions: list[str] | None
) -> None:
    """With the index absent, behind, and complete."""
    commit_one_by_one(adapters, indexed)
    IndexPartitions(adapters.log, adapters.state, adapters.index, lambda: True)(LEDGER)
    commit_one_by_one(adapters, 20)
    got, since, sync_to = list[int](), 0, None
    for _ in range(30):
        page = sync(adapters)(LEDGER, partitions, since, 3, ROOM, sync_to)
        got += [event.position for event in page.events]
        since, sync_to = page.next_since, page.sync_to
        if not page.has_more:
            break
    wanted = [n + 1 for n in range(20) if partitions is None or f"p{n % 3}" in partitions]
    assert (got, since, sync_to) == (wanted, 20, 20)


def test_s6_a_page_is_cut_by_bytes_but_never_empty(adapters: Adapters) -> None:
    commit_one_by_one(adapters, 4)
    page = sync(adapters)(LEDGER, None, 0, 500, max_bytes=1)
    assert ([event.position for event in page.events], page.next_since, page.has_more) == ([1], 1, True)


def test_s6_the_watermark_stays_fixed_while_others_commit(adapters: Adapters) -> None:
    commit_one_by_one(adapters, 4)
    first = sync(adapters)(LEDGER, None, 0, 2, ROOM)
    commit_one_by_one(adapters, 9)
    last = sync(adapters)(LEDGER, None, first.next_since, 500, ROOM, first.sync_to)
    assert [event.position for event in last.events] == [3, 4]
    assert (last.next_since, last.sync_to, last.has_more) == (4, 4, False)


def test_s8_a_future_cursor_gets_an_empty_page_and_the_real_maximum(adapters: Adapters) -> None:
    commit_one_by_one(adapters, 4)
    page = sync(adapters)(LEDGER, None, 99, 500, ROOM)
    assert (list(page.events), page.next_since, page.sync_to, page.has_more) == ([], 99, 4, False)


@pytest.mark.parametrize("sync_to", [2, 4, 99, 200])
def test_s8_a_future_cursor_is_told_the_real_maximum_whatever_watermark_it_remembers(
    adapters: Adapters, sync_to: int
) -> None:
    """As after a hub was restored while a client was in the middle of a cycle."""
    commit_one_by_one(adapters, 4)
    page = sync(adapters)(LEDGER, None, 99, 500, ROOM, sync_to)
    assert (list(page.events), page.next_since, page.sync_to, page.has_more) == ([], 99, 4, False)


def test_s6_a_cursor_at_or_past_its_own_watermark_is_at_the_end_of_its_cycle(adapters: Adapters) -> None:
    commit_one_by_one(adapters, 4)
    for since in (2, 3, 4):
        page = sync(adapters)(LEDGER, None, since, 500, ROOM, 2)
        assert (list(page.events), page.next_since, page.sync_to, page.has_more) == ([], since, 2, False)


def test_a_watermark_above_the_head_is_refused(adapters: Adapters) -> None:
    commit_one_by_one(adapters, 2)
    with pytest.raises(BadRequest) as caught:
        sync(adapters)(LEDGER, None, 0, 500, ROOM, sync_to=3)
    assert caught.value.details["field"] == "sync_to_committed_id"


def test_a_sweep_rings_for_exactly_the_ledgers_that_are_behind(adapters: Adapters) -> None:
    commit_one_by_one(adapters, 3)
    bell = MemoryDoorbell()
    watch = Watch(INDEX_CONSUMER, bell)
    sweep = Sweep(
        adapters.log, adapters.state, adapters.rounds, [watch], adapters.together, lambda: 10**15, lambda: True
    )
    assert sweep(Failures()).rings == 1
    IndexPartitions(adapters.log, adapters.state, adapters.index, lambda: True)(LEDGER)
    assert sweep(Failures()).rings == 0
    assert bell.rung == [LEDGER]


def test_a_sweep_minds_age_and_contract(adapters: Adapters) -> None:
    commit_one_by_one(adapters, 1)
    young, foreign = MemoryDoorbell(), MemoryDoorbell()
    watches = [
        Watch("fan_out", young, late_ms=10**9),
        Watch(INDEX_CONSUMER, foreign, contracts=frozenset({"realtime"})),
    ]
    now = itertools.count(2_000).__next__
    sweep = Sweep(adapters.log, adapters.state, adapters.rounds, watches, adapters.together, now, lambda: True)
    assert sweep(Failures()).rings == 0
