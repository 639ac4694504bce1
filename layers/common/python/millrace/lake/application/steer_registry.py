"""Steer the registry: an operator reads which versions the tables take, and those who run the hub replace it (C5)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from millrace.lake.application.registries import put_registry, stored_registry
from millrace.lake.domain.hub_access import require_hub
from millrace.lake.domain.registry import Registry
from millrace.lake.ports.objects import Objects
from millrace.ledger.domain.access import OPERATOR, Identity

Section = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SteerRegistry:
    objects: Objects

    def read(self, identity: Identity) -> Section:
        """As it was put; None if none was."""
        identity.require(OPERATOR)
        stored = stored_registry(self.objects)
        known = Registry() if stored is None else Registry.parse(stored)
        return {"registry": None if stored is None else json.loads(stored), **_summary(known)}

    def put(self, identity: Identity, data: bytes) -> Section:
        """It holds for every tenant's events. `BadRequest` names what a run could not use; then the last one stays."""
        require_hub(identity, "The registry")
        return _summary(put_registry(self.objects, data))


def _summary(known: Registry) -> Section:
    versions = sum(len(one.versions) for one in known.types.values())
    return {"types": len(known.types), "versions": versions, "policy": known.policy}
