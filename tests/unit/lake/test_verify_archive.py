"""C3: the archive is proved against the log, position by position, and what it lacks is named and refilled."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from millrace.lake.application.archive_findings import Verified
from millrace.lake.application.quarantine import REDRIVEN
from millrace.lake.application.verify_archive import VerifyArchive
from millrace.lake.domain.archive import EventWriter, read_lines
from millrace.lake.domain.catalog import check_event
from millrace.lake.domain.catalog import draft as drafted
from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.application.prune import Prune
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.canonical import canonical, digest
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft
from millrace.ledger.domain.ranges import Ranges
from millrace.sync.domain.submit import check_item, check_request
from tests.unit.lake.archiving import Hub, prove

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
    assert again.as_json()["refilled"] == again.refilled
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


@pytest.mark.parametrize(
    "line", ["[1]", "5", "null", '"x"', "{}", '{"ledger":["x"]}', '{"ledger":"sync","tenant":"t"}', "[" * 100_000]
)
def test_a_line_of_any_other_kind_is_named_too(hub: Hub, line: str) -> None:
    """C3."""
    hub.objects.stored["ledger/0-x.jsonl.gz"] = gzip.compress(f"{line}\n".encode())
    assert list(verify(hub).damaged) == ["ledger/0-x.jsonl.gz"]


ODD_IDS = (" ", "\t", "\u2003", "\0", "\u0085", "a\u2028b", "  x ", '"', "\\", "a#%b", "null", "é" * 512)
ODD_TYPES = (*ODD_IDS, "t" * 1_018, "\N{EARTH GLOBE EUROPE-AFRICA}" * 5_000)
WHEN = "2026-02-16T10:00:00Z"
ODD_TIMES: tuple[Any, ...] = (
    None,
    0,
    -1,
    -62_135_596_800_000,
    -62_135_596_800_001,
    253_402_300_799_999,
    10**300,
    1e300,
    0.5,
    True,
    [],
    " ",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59.999999999Z",
    "9999-12-31T23:59:59-01:00",
)
ODD_VERSIONS = (0, -1, 1, 2**32 - 1, 2**32, "2", None, True, 1.5)
PRODUCER = Identity("C1", "t", frozenset({"c"}), ("*",), frozenset({"producer"}), "t")


def of_sync(id_: str, type_: str, time: Any, version: Any) -> Draft | None:
    event = {"type": type_, "payload": None, "schemaVersion": version}
    item = {"id": id_, "partitions": [id_[:40], "p"], "event": event, "meta": {"clientTs": time}}
    check_request({"events": [item]})
    checked = check_item(item, PRODUCER, "open")
    return checked if isinstance(checked, Draft) else None


def of_catalog(id_: str, type_: str, time: Any, version: Any) -> Draft | None:
    event = {"event_type": type_, "event_version": version, "idempotency_key": id_, "occurred_at": time}
    try:
        return drafted(check_event({**event, "source": id_, "trace_id": id_, "payload": 0}))
    except BadRequest:
        return None


def of_others(id_: str, type_: str, time: Any, version: Any) -> Draft:
    """More than their doors take: each contract's names for type, time and version."""
    body = canonical(
        dict.fromkeys(("type", "event_type", "action"), type_)
        | dict.fromkeys(("ts", "ts_ms", "timestamp"), time)
        | {"contract_version": version, "trace_id": id_}
    )
    return Draft(id_, digest(body), body)


@pytest.mark.parametrize(
    ("ledger", "door"),
    [
        (SYNC, of_sync),
        (B, of_catalog),
        ("realtime#t#s", of_others),
        ("streams#t#r#%23 ", of_others),
        ("delivery#t# ", of_others),
        ("audit#t", of_others),
        ("later#t#x", of_others),
    ],
)
def test_whatever_a_door_commits_is_archived_soundly_and_can_be_driven_again(
    ledger: str, door: Callable[[str, str, Any, Any], Draft | None]
) -> None:
    """C3, C7: the doors differ in what they take; the archive takes it all."""
    told: list[tuple[str, str, Any, Any]] = [(id_, "t", WHEN, 1) for id_ in ODD_IDS]
    told += [(f"type {n}", type_, WHEN, 1) for n, type_ in enumerate(ODD_TYPES)]
    told += [(f"time {n}", "t", time, 1) for n, time in enumerate(ODD_TIMES)]
    told += [(f"version {n}", "t", WHEN, version) for n, version in enumerate(ODD_VERSIONS)]
    drafts = [draft for one in told if (draft := door(*one))]
    assert len(drafts) >= len(ODD_IDS)
    hub = Hub()
    hub.commit_drafts(ledger, drafts)
    hub.archiver()(hub.ledgers())
    prove(hub)
    found = verify(hub, refill=True)
    assert (found.sound, found.events, found.refilled) == (True, len(drafts), [])
    (data,) = hub.objects.stored.values()
    again = EventWriter()
    for line in read_lines(data):
        again.add_line(line)
    assert again.finish().data == data


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
