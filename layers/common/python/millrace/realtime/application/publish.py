"""Publish: commit validated realtime events into their sessions' ledgers, each once in the whole tenant (R5, R9)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from millrace.ledger.application.commit import Commit, Outcome
from millrace.ledger.domain.access import PRODUCER, Identity, session_partition
from millrace.ledger.domain.canonical import canonical, digest
from millrace.ledger.domain.names import realtime_ledger
from millrace.ledger.domain.page import MAX_PAGE_BYTES, Draft, Origin
from millrace.ledger.ports import Together
from millrace.realtime.domain.verdict import Valid

MAX_EVENT_BYTES = 96 * 1024
TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class Published:
    """`event` has its sequence; None with a `problem`: forbidden, conflict or too_large."""

    event: Mapping[str, Any] | None = None
    deduped: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Publish:
    commit: Commit
    together: Together

    def __call__(self, identity: Identity, emissions: Sequence[Valid], trace: str = "") -> list[Published]:
        """One result per event. Sessions do not wait for each other; within one the order given is kept."""
        identity.require(PRODUCER)
        identity.may_name()
        results: list[Published | None] = [None] * len(emissions)
        sessions: dict[str, list[int]] = {}
        drafts: dict[int, Draft] = {}
        first_use: dict[str, tuple[str, bytes]] = {}
        for number, emission in enumerate(emissions):
            session, id_ = emission.event["sessionId"], emission.event["eventId"]
            draft = _draft(emission)
            if not identity.reaches(session_partition(session)):
                results[number] = Published(problem="forbidden")
            elif draft.weight > min(MAX_EVENT_BYTES, MAX_PAGE_BYTES):
                results[number] = Published(problem=TOO_LARGE)
            elif first_use.setdefault(id_, (session, draft.digest)) != (session, draft.digest):
                results[number] = Published(problem="conflict")
            else:
                drafts[number] = draft
                sessions.setdefault(session, []).append(number)
        calls = [
            partial(
                self.commit,
                realtime_ledger(identity.tenant, session),
                [drafts[number] for number in numbers],
                Origin(identity.client_id, trace=trace),
            )
            for session, numbers in sessions.items()
        ]
        for numbers, outcomes in zip(sessions.values(), self.together(calls) if calls else [], strict=True):
            seen: set[str] = set()
            for number, outcome in zip(numbers, outcomes, strict=True):
                repeated = drafts[number].id in seen
                seen.add(drafts[number].id)
                results[number] = _published(emissions[number], outcome, repeated=repeated)
        return [result for result in results if result is not None]


def _draft(emission: Valid) -> Draft:
    """Two spellings of one instant are the same content."""
    event = emission.event
    content = canonical({**event, "ts": emission.instant})
    return Draft(event["eventId"], digest(content), canonical(dict(event)))


def _published(emission: Valid, outcome: Outcome, *, repeated: bool) -> Published:
    if outcome.position is None:
        return Published(problem="conflict")
    deduped = repeated or not outcome.fresh
    stored = emission.event if outcome.body is None else json.loads(outcome.body)
    return Published({**stored, "sequence": outcome.position}, deduped)
