"""Restore rows: make a stream's markers and its messages in delivery again from the events that tell of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from millrace.ledger.domain.errors import Contention
from millrace.ledger.domain.names import Ledger, split_key
from millrace.ledger.domain.page import Event
from millrace.ledger.ports import Together
from millrace.streams.application.emit import delivery_group
from millrace.streams.application.markers import marker_group
from millrace.streams.domain.envelope import MARKER_STREAM
from millrace.streams.domain.restored import LastChange, marker_changes, transitions, with_transitions
from millrace.streams.ports import RestorableRows, VersionedRow

TRIES = 12


@dataclass(frozen=True, slots=True)
class RestoredRows:
    """How many rows were made or brought up to date, and the markers whose last change was pruned."""

    markers: int = 0
    messages: int = 0
    unknown_markers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RestoreRows:
    rows: RestorableRows
    together: Together
    nonce: Callable[[], str]

    def __call__(self, stream: Ledger, batches: Iterable[Sequence[Event]]) -> RestoredRows:
        """From all events of the stream, some at a time. A row that is newer than the log stays as it is."""
        _, tenant, runtime_id, stream_id = split_key(stream.name)
        if stream_id == MARKER_STREAM:
            return self._markers(marker_group(tenant, runtime_id), batches)
        group, messages = delivery_group(tenant, runtime_id), 0
        for events in batches:
            calls = [partial(self._message, group, key, states) for key, states in transitions(events).items()]
            messages += sum(self.together(calls)) if calls else 0
        return RestoredRows(messages=messages)

    def _markers(self, group: str, batches: Iterable[Sequence[Event]]) -> RestoredRows:
        found = marker_changes(event for events in batches for event in events)
        calls = [partial(self._marker, group, marker_id, change) for marker_id, change in found.items()]
        made = sum(self.together(calls)) if calls else 0
        unknown = tuple(name for name, change in found.items() if change.record is None)
        return RestoredRows(made, unknown_markers=unknown)

    def _marker(self, group: str, marker_id: str, change: LastChange) -> bool:
        return self.rows.restore(group, marker_id, VersionedRow(change.revision, change.content, self.nonce()))

    def _message(self, group: str, message_id: str, states: Mapping[str, list[str]]) -> bool:
        for _ in range(TRIES):
            row = self.rows.get(group, message_id) or VersionedRow(0, {}, "")
            content = with_transitions(row.content, states)
            if content is row.content:
                return False
            after = replace(row, version=row.version + 1, content=content, nonce=self.nonce())
            if self.rows.put(group, message_id, after) is None:
                return True
        raise Contention("Others keep changing this row; try again.", message_id=message_id)
