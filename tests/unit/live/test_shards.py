"""The rules of shards: every connection in one, about as many in each, and no change for a few who come or go."""

from __future__ import annotations

from collections import Counter

import pytest

from millrace.live.domain.shards import (
    MOST_SHARDS,
    PER_SHARD,
    Shard,
    count_for,
    estimated,
    fading,
    key_of,
    resized,
    slot_of,
)

CONNECTIONS = [f"L0SM9cOFvHcC{number:05d}=" for number in range(20_000)]


@pytest.mark.parametrize("count", [1, 2, 64, MOST_SHARDS])
def test_every_key_is_in_one_shard_also_one_without_a_slot(count: int) -> None:
    keys = [key_of(name, "sync") for name in CONNECTIONS[:300]] + [f"{name}#sync" for name in CONNECTIONS[:50]]
    keys += ["#", "0", "0000#a#b", "ffff#a#b", "zz#sync", "~"]
    shards = [Shard(number, count) for number in range(count)]
    for key in keys:
        assert sum(shard.holds(key) for shard in shards) == 1, key


def test_connections_spread_evenly() -> None:
    shards = Counter(slot_of(name) * 64 // 65_536 for name in CONNECTIONS)
    assert len(shards) == 64
    assert max(shards.values()) < 1.3 * len(CONNECTIONS) / 64


@pytest.mark.parametrize(
    ("connections", "count"), [(0, 1), (300, 1), (301, 2), (10_000, 64), (100_000, 512), (10**9, MOST_SHARDS)]
)
def test_there_are_as_few_shards_as_are_needed(connections: int, count: int) -> None:
    assert count_for(connections) == count


@pytest.mark.parametrize(
    ("count", "connections", "wanted"),
    [
        (4, 1_200, 4),
        (4, 1_300, 4),
        (4, 2_400, 4),
        (4, 2_401, 16),
        (4, 400, 4),
        (4, 300, 1),
        (64, 4_800, 16),
        (64, 4_801, 64),
    ],
)
def test_the_number_of_shards_changes_only_when_it_is_far_off(count: int, connections: int, wanted: int) -> None:
    assert resized(count, connections, PER_SHARD) == wanted


@pytest.mark.parametrize("everyone", [400, 2_000, 20_000])
def test_the_first_few_connections_tell_about_how_many_there_are(everyone: int) -> None:
    some = sorted(CONNECTIONS[:everyone], key=slot_of)[: PER_SHARD + 1]
    assert 0.8 * everyone < estimated(some, PER_SHARD) < 1.25 * everyone


def test_an_event_for_a_few_makes_a_crowd_no_smaller_but_many_of_them_do() -> None:
    found = 300
    for _ in range(4):
        found = fading(2, found)
    assert found > PER_SHARD // 4
    for _ in range(20):
        found = fading(2, found)
    assert found == 2
