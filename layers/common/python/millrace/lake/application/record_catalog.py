"""Record catalog events: commit envelopes into their domain's ledger, each once under its idempotency key (C1, C2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millrace.lake.domain.catalog import check_event, draft
from millrace.ledger.application.commit import Commit, Outcome
from millrace.ledger.domain.access import PRODUCER, Identity, catalog_partition
from millrace.ledger.domain.errors import Conflict, Rejected
from millrace.ledger.domain.names import catalog_ledger
from millrace.ledger.domain.page import Draft, Origin


@dataclass(frozen=True, slots=True)
class Recorded:
    """Where an event is in its domain. `deduped`: it was there before, or earlier in the same request."""

    idempotency_key: str
    sequence_position: int
    deduped: bool
    committed_at: int


Result = Recorded | Rejected


@dataclass(frozen=True, slots=True)
class RecordCatalog:
    commit: Commit

    def __call__(self, identity: Identity, domain: str, events: Sequence[Any], trace: str = "") -> list[Result]:
        """One result per event, in order. A bad event undoes nothing and stops no other."""
        identity.require(PRODUCER)
        identity.may_name(domain=domain)
        identity.require_reach(catalog_partition(domain), "this domain", field="domain")
        checked = [_checked(event) for event in events]
        drafts = [one for one in checked if isinstance(one, Draft)]
        ledger = catalog_ledger(identity.tenant, domain)
        outcomes = iter(self.commit(ledger, drafts, Origin(identity.client_id, trace=trace)))
        seen: set[str] = set()
        return [_result(one, next(outcomes), seen) if isinstance(one, Draft) else one for one in checked]


def _checked(event: Any) -> Draft | Rejected:
    try:
        return draft(check_event(event))
    except Rejected as error:
        return error


def _result(sent: Draft, outcome: Outcome, seen: set[str]) -> Result:
    if outcome.position is None:
        return Conflict(
            "The idempotency key belongs to an event with another type, version or payload; use a new one.",
            field="idempotency_key",
        )
    repeated = sent.id in seen
    seen.add(sent.id)
    return Recorded(sent.id, outcome.position, repeated or not outcome.fresh, outcome.time_ms)
