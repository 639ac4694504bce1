"""The tenants of a run. All use the same names and the same ids, so that whatever is mixed up meets its twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.names import join_key
from tests.e2e.conftest import Hub

PROJECT, SESSION, RUNTIME, STREAM, DOMAIN, TEAM = "orders", "call-1", "rt", "main", "warehouse", "blue"
FLOODED = "flood-"


@dataclass(frozen=True)
class Tenant:
    """One of a run's tenants. Its name is in every payload it sends."""

    hub: Hub
    name: str

    def headers(self, *projects: str, **claims: Any) -> dict[str, str]:
        """Of somebody who may do everything in this tenant's usual project, or in those given."""
        return self.hub.headers(**{**self._claims(*projects), **claims})

    def token(self) -> str:
        return self.hub.token(**self._claims())

    def ledger(self, contract: str, *scope: str) -> str:
        return join_key(contract, self.name, *scope)

    def _claims(self, *projects: str) -> dict[str, Any]:
        roles = ["producer", "consumer", "operator"]
        return {"tenant": self.name, "projects": list(projects) or [PROJECT], "team_slug": TEAM, "roles": roles}
