"""RuntimeStatus: the `status()` of a runtime, from stored projections that are first brought up to the head (T11)."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.application.read_log import ReadLog
from millrace.ledger.domain.access import CONSUMER, OPERATOR, Identity
from millrace.ledger.domain.names import Ledger, split_key
from millrace.ledger.ports import Log, Projection, Projections, State, Together
from millrace.streams.application.runtime_access import require_runtime
from millrace.streams.domain.status import State as Folded
from millrace.streams.domain.status import fold, nothing
from millrace.streams.ports import Streams

STORE_AFTER = 50
READ_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    log: Log
    state: State
    projections: Projections
    streams: Streams
    heads: Heads
    together: Together
    clock: Callable[[], int]

    def __call__(self, identity: Identity, runtime_id: str, *, rebuild: bool = False) -> dict[str, Any]:
        """`rebuild` folds the whole log again instead of going on from what is stored."""
        identity.require(OPERATOR if rebuild else CONSUMER)
        require_runtime(identity, runtime_id)
        known = self.streams.of_runtime(identity.tenant, runtime_id)
        calls = [partial(self._of_stream, stream, rebuild) for stream in known]
        found = self.together(calls) if calls else []
        return {"runtime_id": runtime_id, "taken_ts_ms": self.clock(), "streams": found}

    def _of_stream(self, stream: Ledger, rebuild: bool) -> dict[str, Any]:
        marks = self.state.marks(stream)
        head = newest(self.log, self.heads, stream, marks.hint)
        stored = self.projections.load(stream)
        base = Projection(0, {}) if rebuild else stored
        folded: Folded = deepcopy(dict(base.state)) or {**nothing(), "from_seq_no": 1}
        at = base.through
        if at < marks.floor - 1:
            # What was pruned before it was folded is missing from here on, and the answer says so.
            folded, at = {**nothing(), "from_seq_no": marks.floor}, marks.floor - 1
        at = self._fold(stream, folded, at, head)
        first = folded["from_seq_no"]
        knows_less = first > stored.state.get("from_seq_no", first)
        worth_storing = not knows_less if rebuild else at - stored.through >= STORE_AFTER
        if worth_storing:
            self.projections.store(stream, Projection(at, folded), stored)
        return {
            "stream_id": split_key(stream.name)[3],
            "seq_no": at,
            "floor_seq_no": marks.floor,
            "from_seq_no": first,
            "complete": first == 1,
            "projection": {name: value for name, value in folded.items() if name != "from_seq_no"},
        }

    def _fold(self, stream: Ledger, folded: Folded, at: int, head: int) -> int:
        for pages in ReadLog(self.log, self.together).batches(stream, at, head, READ_AT_ONCE):
            for page in pages:
                for event in page.events():
                    if not at < event.position <= head:
                        continue
                    at = event.position
                    if event.record.body is None:
                        folded.clear()
                        folded.update(nothing(), from_seq_no=at + 1)
                    else:
                        fold(folded, json.loads(event.record.body), at)
        return at
