"""Ingest: a batch of events into a team's journal, each exactly once, whatever became of its neighbours (D8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millrace.delivery.domain.inbox import (
    DUPLICATE,
    REJECTED,
    SUCCESS,
    Result,
    check_batch,
    journal,
    merged,
    refusal_of,
)
from millrace.ledger.application.commit import Commit, Outcome
from millrace.ledger.domain.access import PRODUCER, Identity, team_partition
from millrace.ledger.domain.page import Draft, Origin

TAKEN = "event_id is taken by an event with other content"


@dataclass(frozen=True, slots=True)
class Ingest:
    commit: Commit

    def __call__(self, identity: Identity, body: Any, trace: str = "") -> list[Result]:
        """One result per event, in order. The journal is that of the token's team."""
        identity.require(PRODUCER)
        identity.require_reach(team_partition(identity.team_slug), "its team's journal", field="team_slug")
        identity.may_name(team_slug=identity.team_slug)
        checked = check_batch(body)
        drafts = [one for one in checked if isinstance(one, Draft)]
        ledger = journal(identity.tenant, identity.team_slug)
        outcomes = iter(self.commit(ledger, drafts, Origin(identity.client_id, trace=trace)))
        return merged(
            [
                _result(one.id, next(outcomes)) if isinstance(one, Draft) else refusal_of(number, one)
                for number, one in enumerate(checked)
            ]
        )


def _result(event_id: str, outcome: Outcome) -> Result:
    if outcome.conflict:
        return {"event_id": event_id, "status": REJECTED, "error": TAKEN}
    return {"event_id": event_id, "status": SUCCESS if outcome.fresh else DUPLICATE}
