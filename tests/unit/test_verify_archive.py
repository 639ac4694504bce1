"""C3: the archive is proved against the log, position by position, and what it lacks is named and refilled."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from millrace.adapters.memory import in_turn
from millrace.application.archive_findings import Verified
from millrace.application.prune import Prune
from millrace.application.quarantine import REDRIVEN
from millrace.application.verify_archive import VerifyArchive
from millrace.domain.archive import EventWriter, read_lines
from millrace.domain.ledger import Ledger
from millrace.domain.ranges import Ranges
from tests.unit.archiving import Hub, prove

A, B = "sync#t#a", "catalog#t#b"
SYNC = "sync#t#c"


@pytest.fixture
def hub() -> Hub:
    made = Hub()
    for round_ in range(3):
        made.commit(A, 4 + round_)
        made.commit(SYNC, 2)
        made.archiver()(made.ledgers())
    return made


def verify(hub: Hub, *, refill: bool = False) -> Verified:
    return VerifyArchive(hub.log, hub.state, hub.objects, in_turn)(refill=refill)


def some_object(hub: Hub, ledger: str = A, number: int = 0) -> str:
    holding = [name for name, data in sorted(hub.objects.stored.items()) if ledger.encode() in gzip.decompress(data)]
    return holding[number]


def rewritten(hub: Hub, name: str, change: Callable[[list[dict[str, Any]]], None]) -> None:
    lines = list(read_lines(hub.objects.stored[name]))
    change(lines)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    hub.objects.stored[name] = gzip.compress(text.encode())


def test_a_sound_archive_is_proved(hub: Hub) -> None:
    found = verify(hub)
    assert found.sound
    assert (found.ledgers, found.events, found.waiting, found.pruned) == (2, 21, 0, 0)


def test_what_is_not_archived_yet_waits_and_is_not_missing(hub: Hub) -> None:
    hub.commit(A, 5)
    hub.commit("sync#t#young", 2)
    found = verify(hub)
    assert found.sound
    assert found.waiting == 7


def test_a_removed_object_is_a_gap_that_is_named_and_refilled(hub: Hub) -> None:
    name = some_object(hub, number=1)
    del hub.objects.stored[name]
    found = verify(hub)
    assert found.gaps[A] == Ranges(((5, 9),))
    again = verify(hub, refill=True)
    assert again.refilled
    assert again.told()["refilled"] == again.refilled
    assert name not in again.refilled, "compaction has seen that name, and would not look at it again"
    prove(hub)
    assert verify(hub).sound


def test_refilling_twice_makes_nothing_twice(hub: Hub) -> None:
    del hub.objects.stored[some_object(hub)]
    verify(hub, refill=True)
    before = dict(hub.objects.stored)
    assert not verify(hub, refill=True).refilled
    assert hub.objects.stored == before


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda _: b"", lambda _: b"no gzip"], ids=["half", "empty", "other"]
)
def test_a_damaged_object_is_named_and_its_events_are_refilled(hub: Hub, damage: Callable[[bytes], bytes]) -> None:
    name = some_object(hub)
    hub.objects.stored[name] = damage(hub.objects.stored[name])
    found = verify(hub, refill=True)
    assert name in found.damaged
    assert found.gaps[A] == Ranges(((1, 4),))
    del hub.objects.stored[name]
    prove(hub)


def test_a_line_that_is_no_event_is_named(hub: Hub) -> None:
    name = some_object(hub)
    rewritten(hub, name, lambda lines: lines[0].pop("source"))
    assert name in verify(hub).damaged


def test_a_position_in_two_objects_is_named(hub: Hub) -> None:
    writer = EventWriter()
    event = hub.events()[A, 6]
    writer.add(A, event)
    made = writer.finish()
    hub.objects.put(made.name, made.data)
    found = verify(hub)
    assert found.repeated == {A: Ranges(((6, 6),))}
    assert not found.gaps


@pytest.mark.parametrize("field", ["payload", "idempotency_key", "event_type", "partitions", "committed_at"])
def test_an_event_that_is_archived_otherwise_than_committed_is_named(hub: Hub, field: str) -> None:
    def change(lines: list[dict[str, Any]]) -> None:
        line = next(line for line in lines if line["ledger"] == A)
        line[field] = {"payload": {}, "partitions": ["x"], "committed_at": 1}.get(field, "other")

    rewritten(hub, some_object(hub), change)
    assert verify(hub).different == {A: Ranges(((1, 1),))}


def test_an_event_that_was_never_committed_is_named(hub: Hub) -> None:
    name = some_object(hub)
    rewritten(hub, name, lambda lines: lines.append({**lines[0], "sequence_position": 99}))
    assert "does not have" in verify(hub).damaged[name]


def test_what_was_pruned_everywhere_is_no_gap(hub: Hub) -> None:
    del hub.objects.stored[some_object(hub)]
    for name, through in ((A, 4), (SYNC, 2)):
        Prune(hub.log, hub.state, ("archive",))(Ledger.to_read(name), through)
    found = verify(hub, refill=True)
    assert found.sound
    assert found.pruned in (4, 6)
    assert not found.refilled


def test_what_quarantine_drove_again_is_no_repetition(hub: Hub) -> None:
    """C7: a repaired event says again, and otherwise, what another object holds."""
    writer = EventWriter()
    writer.add_line({**next(read_lines(hub.objects.stored[some_object(hub)])), "event_version": 2})
    made = writer.finish(salt="entry")
    hub.objects.put(made.name, made.data)
    assert not verify(hub).sound
    hub.objects.put(f"{REDRIVEN}x.json", json.dumps({"object": made.name, "ids": ["entry"]}).encode())
    found = verify(hub)
    assert found.sound
    assert found.repaired == 1
