"""Emit: commit a runtime's events into one of its streams, each once. Secrets are dropped before anything is stored.

Delivery transitions first pass the row of their message (T4). The row and the log are two writes, so a batch is cut
where a message's next transition begins: the one before it is committed by then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from millrace.ledger.application.commit import Commit, Outcome
from millrace.ledger.domain.access import PRODUCER, Identity
from millrace.ledger.domain.names import Ledger, join_key, stream_ledger
from millrace.ledger.domain.page import Draft, Origin
from millrace.ledger.ports import Together
from millrace.streams.application.announce import Announce
from millrace.streams.application.runtime_access import require_negotiated, require_runtime
from millrace.streams.application.tell_policy import say_nothing
from millrace.streams.domain import transition
from millrace.streams.domain.envelope import Emission, check_event, check_new
from millrace.streams.domain.errors import SdkError
from millrace.streams.domain.grant import BreakGlassGrant
from millrace.streams.domain.negotiate import Negotiated
from millrace.streams.domain.privacy import Policy
from millrace.streams.ports import Announcement, RawEntry, RawValues, Runtimes, Sealer, VersionedRow


@dataclass(frozen=True, slots=True)
class Emitted:
    event_id: str
    position: int
    deduped: bool


Result = Emitted | SdkError


@dataclass(slots=True)
class _Segment:
    """Events that go into one commit: at most one transition of each message among them."""

    emissions: dict[str, Emission] = field(default_factory=dict)
    numbers: dict[str, list[int]] = field(default_factory=dict)
    """By event id, in order: which events of the request it answers."""
    messages: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Emit:
    commit: Commit
    announce: Announce
    runtimes: Runtimes
    raw_values: RawValues
    sealer: Sealer
    policy: Policy
    hasher: Callable[[str], Callable[[str], str]]
    """For a tenant, the keyed hash of its sensitive values."""
    together: Together
    clock: Callable[[], int]
    tell_policy: Callable[[Identity], None] = say_nothing
    """Called before the policy is applied."""

    def __call__(self, identity: Identity, runtime_id: str, stream_id: str, sent: Sequence[Any]) -> list[Result]:
        """One result per event, in order; one bad event hurts no other."""
        identity.require(PRODUCER)
        require_runtime(identity, runtime_id)
        check_new(tenant=identity.tenant, runtime_id=runtime_id, stream_id=stream_id)
        runtime = self.runtimes.load(identity.tenant, runtime_id, identity.client_id)
        negotiated = require_negotiated(runtime.negotiated)
        self.tell_policy(identity)
        ledger = stream_ledger(identity.tenant, runtime_id, stream_id)
        batch = _Batch(self, identity, ledger, negotiated, runtime_id)
        hashed = self.hasher(identity.tenant)
        emissions: dict[int, Emission] = {}
        for number, event in enumerate(sent):
            try:
                emissions[number] = check_event(event, runtime_id, stream_id, negotiated, self.policy, hashed)
                batch.add(number, emissions[number])
            except SdkError as error:
                batch.results[number] = error
        batch.flush()
        now = self.clock()
        for grant in runtime.grants:
            if grant.active(now):
                self._keep_raw(grant, stream_id, emissions, batch.results)
        return [batch.results[number] for number in range(len(sent))]

    def _keep_raw(
        self, grant: BreakGlassGrant, stream_id: str, emissions: dict[int, Emission], results: dict[int, Result]
    ) -> None:
        entries = []
        for number, emission in emissions.items():
            result, values = results[number], grant.covered(stream_id, emission.raw)
            if isinstance(result, Emitted) and values:
                content = {"ts_ms": emission.event["ts_ms"], "values": [{"path": p, "value": v} for p, v in values]}
                sealed = self.sealer.seal(grant, json.dumps(content).encode())
                entries.append(RawEntry(stream_id, result.event_id, result.position, sealed))
        if entries:
            self.raw_values.keep(grant.id, entries, grant.expires_ms)


@dataclass(slots=True)
class _Batch:
    emit: Emit
    identity: Identity
    ledger: Ledger
    negotiated: Negotiated
    runtime_id: str
    results: dict[int, Result] = field(default_factory=dict)
    segment: _Segment = field(default_factory=_Segment)

    def add(self, number: int, emission: Emission) -> None:
        id_ = emission.draft.id
        known = self.segment.emissions.get(id_)
        if known is not None and known.draft.digest == emission.draft.digest:
            self.segment.numbers[id_].append(number)
            return
        message = emission.event["message_id"] if emission.is_transition else None
        if message is not None:
            transition.target_state(emission)
        if known is not None or message in self.segment.messages:
            self.flush()  # an id that may have been refused, or the message's transition before this one
        if message is not None:
            self.segment.messages.add(message)
        self.segment.emissions[id_] = emission
        self.segment.numbers[id_] = [number]

    def flush(self) -> None:
        """Let the segment's transitions pass their rows, commit what may be, and settle the rows it told of."""
        segment, self.segment = self.segment, _Segment()
        rows = self._pass_rows([e for e in segment.emissions.values() if e.is_transition])
        drafts = [e.draft for e in segment.emissions.values() if not isinstance(rows.get(e.draft.id), SdkError)]
        placed = self._commit(drafts)
        taken = [segment.emissions[id_].earlier for id_, outcome in placed.items() if outcome.position is None]
        placed |= self._commit([draft for draft in taken if draft is not None])
        for id_, numbers in segment.numbers.items():
            refused = rows.get(id_)
            for at, number in enumerate(numbers):
                if isinstance(refused, SdkError):
                    self.results[number] = refused
                else:
                    self.results[number] = _result(id_, placed[id_], repeated=at > 0)
        self._conclude(
            [(segment.emissions[id_], row, placed[id_]) for id_, row in rows.items() if isinstance(row, VersionedRow)]
        )

    def _commit(self, drafts: Sequence[Draft]) -> dict[str, Outcome]:
        outcomes = self.emit.commit(self.ledger, drafts, Origin(self.identity.client_id)) if drafts else []
        return {draft.id: outcome for draft, outcome in zip(drafts, outcomes, strict=True)}

    def _pass_rows(self, emissions: Sequence[Emission]) -> dict[str, VersionedRow | SdkError | None]:
        """Per event id: the row that now announces it, None if it had passed before, or why it may not."""
        calls = [partial(self._pass_row, emission) for emission in emissions]
        answers = self.emit.together(calls) if calls else []
        return {emission.draft.id: answer for emission, answer in zip(emissions, answers, strict=True)}

    def _pass_row(self, emission: Emission) -> VersionedRow | SdkError | None:
        def decide(row: VersionedRow | None) -> tuple[Any, Announcement] | None:
            content = row.content if row else {}
            if transition.known_before(content, emission):
                return None
            after = transition.advance(content, emission, self.negotiated)
            return after, Announcement(self.ledger, emission.draft, self.identity.client_id)

        try:
            row, changed = self.emit.announce.change(self._group, emission.event["message_id"], decide)
        except SdkError as error:
            return error
        return row if changed else None

    def _conclude(self, announced: Sequence[tuple[Emission, VersionedRow, Outcome]]) -> None:
        calls = [
            partial(self.emit.announce.conclude, self._group, emission.event["message_id"], row, outcome.position)
            for emission, row, outcome in announced
        ]
        if calls:
            self.emit.together(calls)

    @property
    def _group(self) -> str:
        return delivery_group(self.identity.tenant, self.runtime_id)


def delivery_group(tenant: str, runtime_id: str) -> str:
    return join_key("delivery", tenant, runtime_id)


def _result(event_id: str, outcome: Outcome, *, repeated: bool) -> Result:
    if outcome.position is None:
        return transition.conflict()
    return Emitted(event_id, outcome.position, repeated or not outcome.fresh)
