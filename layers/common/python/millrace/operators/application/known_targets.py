"""The targets that hear of a ledger and that a bearer may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.domain.source_access import may_read
from millrace.delivery.ports.targets import Directory, Kept
from millrace.ledger.domain.access import Identity


@dataclass(frozen=True, slots=True)
class KnownTargets:
    directory: Directory

    def __call__(self, identity: Identity) -> Sequence[HubTarget]:
        """Whoever may not read all that a target is sent, does not see it."""
        return [kept.target for kept in self.kept(identity)]

    def kept(self, identity: Identity) -> Sequence[Kept]:
        """The same, with how each fares."""
        return [
            kept
            for kept in self.directory.of(identity.tenant)
            if all(may_read(identity, source) for source in kept.target.sources)
        ]
