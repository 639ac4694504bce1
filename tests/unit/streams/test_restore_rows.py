"""Markers and messages in delivery are made again from the events that told of them (M1–M5, T4)."""

from __future__ import annotations

from typing import Any

from millrace.ledger.adapters.memory import in_turn
from millrace.streams.adapters.memory import MemoryRows
from millrace.streams.application.restore_rows import RestoredRows, RestoreRows
from tests.unit.streams.hub import STREAM, StreamsHub, codes, transition

PLACE = {"lat": 52.5, "lon": 13.4}
RECEIPTS = ["sdk.capability.receipt_terminality"]


def restored(hub: StreamsHub, stream: str) -> RestoredRows:
    pages = hub.log.pages[hub.ledger(stream).name]
    events = [event for first in sorted(pages) for event in pages[first].events()]
    return RestoreRows(hub.rows, in_turn, hub.new_id)(hub.ledger(stream), [events])


def listed(hub: StreamsHub) -> Any:
    return hub.markers.list(hub.identity(), "r1", None, None, None)["markers"]


def marked(hub: StreamsHub) -> None:
    """`a` is moved twice, `b` created and deleted, `c` created."""
    me, markers = hub.identity(), hub.markers
    for name in ("a", "b", "c"):
        markers.create(me, "r1", {"marker_id": name, "label": name, "position": PLACE})
    for expected in (1, 2):
        markers.move(me, "r1", "a", {"position": {"lat": expected, "lon": 0}, "expected_revision": expected})
    markers.delete(me, "r1", "b", 1)


def test_markers_are_listed_as_before_and_go_on_at_their_revisions() -> None:
    """M1, M3, M5."""
    hub = StreamsHub()
    marked(hub)
    before = listed(hub)
    hub.rows = MemoryRows()
    assert restored(hub, "markers") == RestoredRows(markers=3)
    assert listed(hub) == before
    me = hub.identity()
    again = hub.markers.create(me, "r1", {"marker_id": "b", "label": "b", "position": PLACE})
    assert again["marker"]["revision"] == 3
    moved = hub.markers.move(me, "r1", "a", {"position": PLACE, "expected_revision": 3})
    assert moved["marker"]["revision"] == 4
    ids = [event["event_id"] for event in hub.stored("markers")]
    assert len(ids) == len(set(ids)) == 8, "every change has told of itself, once"


def test_a_marker_whose_last_change_was_pruned_counts_as_deleted_at_its_revision() -> None:
    """M3: it continues, and no event id is used twice."""
    hub = StreamsHub()
    marked(hub)
    hub.prune("markers", 3)
    hub.rows = MemoryRows()
    assert restored(hub, "markers").unknown_markers == ("c",)
    assert [marker["marker_id"] for marker in listed(hub)] == ["a"]
    again = hub.markers.create(hub.identity(), "r1", {"marker_id": "c", "label": "c", "position": PLACE})
    assert again["marker"]["revision"] == 2


def test_a_marker_that_is_newer_stays_as_it_is() -> None:
    hub = StreamsHub()
    marked(hub)
    before = dict(hub.rows.items)
    assert restored(hub, "markers") == RestoredRows()
    assert hub.rows.items == before


def test_messages_are_refused_and_accepted_as_before() -> None:
    """T4."""
    hub = StreamsHub()
    hub.agree(requested_capabilities=RECEIPTS)
    hub.send(transition("e1", "m1", "queued"), transition("e2", "m1", "sent"), transition("e3", "m2", "failed"))
    hub.send(transition("f1", "m1", "delivered"), stream="other")
    hub.rows = MemoryRows()
    assert restored(hub, STREAM) == RestoredRows(messages=2)
    assert restored(hub, "other") == RestoredRows(messages=1)
    assert restored(hub, "other") == RestoredRows(), "the second time it is all there"
    sent = hub.send(
        transition("e2", "m1", "sent"), transition("e9", "m1", "in_flight"), transition("e8", "m2", "queued")
    )
    assert codes(sent) == [2, "RUNTIME_ALREADY_TERMINAL", "RUNTIME_ALREADY_TERMINAL"]


def test_streams_are_restored_in_any_order() -> None:
    """T4: the states of a message have an order, its streams have none."""
    hub = StreamsHub()
    hub.agree(requested_capabilities=RECEIPTS)
    hub.send(transition("e1", "m1", "queued"))
    hub.send(transition("f1", "m1", "in_flight"), stream="other")
    hub.rows = MemoryRows()
    restored(hub, "other")
    restored(hub, STREAM)
    assert codes(hub.send(transition("e3", "m1", "dispatching"))) == ["RUNTIME_INVALID_STATE"]
    assert codes(hub.send(transition("e4", "m1", "sent"))) == [2]
