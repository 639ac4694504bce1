"""Show degraded: subscriptions of a runtime's streams that lost history, and streams that begin with a gap (T9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.domain.access import OPERATOR, Identity, runtime_partition
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import Ledger, join_key, split_key
from millrace.ledger.ports import Log, State, Together
from millrace.operators.domain.reach import END
from millrace.operators.ports import LedgerNames
from millrace.streams.ports import DegradedSubscriptions

STREAMS = 25
"""That one page looks into."""

Section = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StreamLook:
    stream_id: str
    floor: int
    head: int
    degraded: Sequence[str]


@dataclass(frozen=True, slots=True)
class ShowDegraded:
    registry: LedgerNames
    degraded: DegradedSubscriptions
    log: Log
    state: State
    heads: Heads
    together: Together

    def __call__(self, identity: Identity, runtime_id: str, after: str, limit: int) -> Section:
        identity.require(OPERATOR)
        identity.require_reach(runtime_partition(runtime_id), "this runtime", field="runtime_id")
        stem = join_key("streams", identity.tenant, runtime_id) + "#"
        stream, subscription = _place(after)
        first = stem + join_key(stream) + ("\x00" if stream and not subscription else "")
        names = self.registry.page(first, stem + END, STREAMS + 1)
        begun = stem + join_key(stream)
        calls = [
            partial(self._look, name, subscription if name == begun else "", limit + 1) for name in names[:STREAMS]
        ]
        looks: Sequence[StreamLook] = self.together(calls) if calls else []
        return _page(looks, subscription and stream, limit, more=len(names) > STREAMS)

    def _look(self, name: str, subscription: str, limit: int) -> StreamLook:
        ledger = Ledger.to_read(name)
        marks = self.state.marks(ledger)
        head = newest(self.log, self.heads, ledger, marks.hint) if marks.floor > 1 else 0
        return StreamLook(
            split_key(name)[-1], marks.floor, head, self.degraded.degraded_after(ledger, subscription, limit)
        )


def _page(looks: Sequence[StreamLook], resumed: str, limit: int, *, more: bool) -> Section:
    """A gap is told where a page comes to its stream for the first time."""
    found: list[Section] = []
    gaps: list[Section] = []
    before = ""
    for look in looks:
        room = limit - len(found)
        if not room:
            return {"degraded": found, "gaps": gaps, "next": before}
        if look.floor > 1 and look.stream_id != resumed:
            gaps.append({"stream_id": look.stream_id, "floor": look.floor, "head": look.head})
        found += [
            {"stream_id": look.stream_id, "subscription": id_, "floor": look.floor} for id_ in look.degraded[:room]
        ]
        if len(look.degraded) > room:
            return {"degraded": found, "gaps": gaps, "next": join_key(look.stream_id, look.degraded[room - 1])}
        before = join_key(look.stream_id)
    return {"degraded": found, "gaps": gaps, "next": before if more else None}


def _place(after: str) -> tuple[str, str]:
    """A stream, and the last subscription of it that was shown; none: all of them were."""
    parts = split_key(after)
    if len(parts) > 2:
        raise BadRequest("after must be the next of an earlier answer.", field="after")
    return parts[0], parts[1] if len(parts) == 2 else ""
