"""What a stream's events tell of the rows that announced them: markers (M5), and messages in delivery (T4)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.page import Event
from millrace.streams.domain.envelope import TRANSITION
from millrace.streams.domain.marker import CREATED, DELETED, MOVED
from millrace.streams.domain.transition import ENDS, STATES, Row

KINDS = (CREATED, MOVED, DELETED)


@dataclass(frozen=True, slots=True)
class LastChange:
    """A marker as its newest event tells it; without a record if that event was pruned."""

    revision: int
    record: Mapping[str, Any] | None
    deleted: bool

    @property
    def content(self) -> Mapping[str, Any]:
        """Of its row. A marker that nothing is known of counts as deleted: it can be created again."""
        return {"record": self.record or {}, "deleted": self.deleted or self.record is None}


def marker_changes(events: Iterable[Event]) -> dict[str, LastChange]:
    """By marker id. Other events of the stream are passed over."""
    found: dict[str, LastChange] = {}
    for event in events:
        marker_id, change = _change(event)
        if change is not None and (marker_id not in found or found[marker_id].revision < change.revision):
            found[marker_id] = change
    return found


def transitions(events: Iterable[Event]) -> dict[str, dict[str, list[str]]]:
    """By message id: its states, each with the stream, id and digest of its first event."""
    found: dict[str, dict[str, list[str]]] = {}
    for event in events:
        content = json.loads(event.record.body or b"{}")
        if content.get("event_type") == TRANSITION and content["payload"].get("to") in STATES:
            parts = [content["stream_id"], event.record.id, event.record.digest.hex()]
            found.setdefault(content["message_id"], {}).setdefault(content["payload"]["to"], parts)
    return found


def with_transitions(row: Row, passed: Mapping[str, list[str]]) -> Row:
    """The row with these states too, in the order of states. Whether `sent` was the end nobody knows any more, so it
    is not: what may still come is accepted."""
    every = {**passed, **row.get("events", {})}
    if every.keys() == row.get("events", {}).keys():
        return row
    ordered = {state: every[state] for state in STATES if state in every}
    last = list(ordered)[-1]
    ended = last in ENDS or (bool(row.get("terminal")) and last == row.get("state"))
    return {"state": last, "terminal": ended, "events": ordered}


def _change(event: Event) -> tuple[str, LastChange | None]:
    if event.record.body is None:
        begin, _, revision = event.record.id.rpartition("-")
        if not begin.startswith("marker-") or not revision.isdecimal():
            return "", None
        return begin.removeprefix("marker-"), LastChange(int(revision), None, deleted=False)
    payload = json.loads(event.record.body)["payload"]
    if payload.get("extension_event_type") not in KINDS:
        return "", None
    record = payload["marker"]
    return record["marker_id"], LastChange(record["revision"], record, payload["extension_event_type"] == DELETED)
