"""Submit: a request of the sync contract. Good items are committed, bad ones refused, each gets one result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from millrace.application.commit import Commit, Outcome
from millrace.domain.access import PRODUCER, Identity
from millrace.domain.ledger import Ledger
from millrace.domain.page import Draft, Origin
from millrace.domain.sync_submit import VALIDATION_FAILED, Refusal, check_item, check_request

CONFLICT = Refusal(
    VALIDATION_FAILED, [{"field": "id", "message": "is taken by an event with other content; use a new id"}]
)


@dataclass(frozen=True, slots=True)
class Submit:
    commit: Commit
    clock: Callable[[], int]
    profiles: Mapping[str, str]
    """`tenant/project` → profile; a project that is not named is open."""

    def __call__(self, identity: Identity, project: str, body: Any, connection: str = "") -> list[dict[str, Any]]:
        identity.require(PRODUCER)
        identity.require_project(project)
        items = check_request(body)
        profile = self.profiles.get(f"{identity.tenant}/{project}", "open")
        checked = [check_item(item, identity, profile) for item in items]
        drafts = [result for result in checked if isinstance(result, Draft)]
        ledger = Ledger.of("sync", identity.tenant, project)
        outcomes = iter(self.commit(ledger, drafts, Origin(identity.client_id, connection)))
        return [
            self._result(item["id"], next(outcomes) if isinstance(result, Draft) else result)
            for item, result in zip(items, checked, strict=True)
        ]

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
