"""Submit: commit the good items of a request and refuse the bad ones. Each item gets one result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from millrace.ledger.application.commit import Commit, Outcome
from millrace.ledger.domain.access import PRODUCER, Identity
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Origin
from millrace.sync.domain.submit import FORBIDDEN, VALIDATION_FAILED, Refusal, check_item, check_request

CONFLICT = Refusal(
    VALIDATION_FAILED, [{"field": "id", "message": "is taken by an event with other content; use a new id"}]
)

OTHER_PROJECT = Refusal(FORBIDDEN, [{"field": "project", "message": "is not the project this goes to"}])


@dataclass(frozen=True, slots=True)
class Submit:
    commit: Commit
    clock: Callable[[], int]
    profile_of: Callable[[str, str], str]
    """The profile of a tenant's project."""

    def __call__(
        self,
        identity: Identity,
        project: str,
        body: Any,
        connection: str = "",
        trace: str = "",
        *,
        stop_at_rejection: bool = False,
    ) -> list[dict[str, Any]]:
        """One result per item. With `stop_at_rejection` whatever follows a rejected item is not processed."""
        identity.require(PRODUCER)
        identity.require_project(project)
        identity.may_name(project=project)
        items = check_request(body)
        profile = self.profile_of(identity.tenant, project)
        checked = [
            check_item(item, identity, profile) if item.get("project") in (None, project) else OTHER_PROJECT
            for item in items
        ]
        tried = list(takewhile(_is_draft, checked)) if stop_at_rejection else checked
        drafts = [result for result in tried if isinstance(result, Draft)]
        origin = Origin(identity.client_id, connection, trace)
        ledger = Ledger.of("sync", identity.tenant, project)
        outcomes = iter(self.commit(ledger, drafts, origin, stop_at_conflict=stop_at_rejection))
        results = [
            self._result(item["id"], next(outcomes, CONFLICT) if isinstance(result, Draft) else result)
            for item, result in zip(items, checked, strict=True)
        ]
        return _stopped(results) if stop_at_rejection else results

    def _result(self, id_: str, result: Outcome | Refusal) -> dict[str, Any]:
        if isinstance(result, Outcome) and result.conflict:
            result = CONFLICT
        if isinstance(result, Refusal):
            return {
                "id": id_,
                "status": "rejected",
                "reason": result.reason,
                "errors": result.errors,
                "status_updated_at": self.clock(),
            }
        return {
            "id": id_,
            "status": "committed",
            "committed_id": result.position,
            "status_updated_at": result.time_ms,
        }


def _is_draft(result: Draft | Refusal) -> bool:
    return isinstance(result, Draft)


def _stopped(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What follows the first rejected item was not processed, and says because of which."""
    blocked_by: str | None = None
    for number, result in enumerate(results):
        if blocked_by is not None:
            results[number] = {
                "id": result["id"],
                "status": "not_processed",
                "reason": "prior_item_failed",
                "blocked_by_id": blocked_by,
                "status_updated_at": result["status_updated_at"],
            }
        elif result["status"] == "rejected":
            blocked_by = result["id"]
    return results
