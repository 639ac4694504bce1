"""Show negotiations: what each client of a runtime has agreed on with the hub (T5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.access import OPERATOR, Identity, runtime_partition
from millrace.streams.ports import Negotiations


@dataclass(frozen=True, slots=True)
class ShowNegotiations:
    negotiations: Negotiations

    def __call__(self, identity: Identity, runtime_id: str, after: str, limit: int) -> dict[str, Any]:
        identity.require(OPERATOR)
        identity.require_reach(runtime_partition(runtime_id), "this runtime", field="runtime_id")
        found = self.negotiations.negotiated_after(identity.tenant, runtime_id, after, limit + 1)
        shown = found[:limit]
        return {
            "negotiations": [
                {"client_id": client_id, "profile": negotiated.profile, **negotiated.answer(runtime_id)}
                for client_id, negotiated in shown
            ],
            "next": shown[-1][0] if len(found) > limit else None,
        }
