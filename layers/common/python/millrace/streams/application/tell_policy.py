"""TellPolicy: record in a tenant's audit that its events are treated by another privacy policy than before (P3, P4).

The policy is a setting of the deployment. So the first event that a process takes for a tenant compares it with the
one that was last recorded for that tenant; nothing recorded means the baseline.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millrace.ledger.application.audit import AuditLedger, audit_ledger
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.names import join_key
from millrace.streams.application.announce import Announce, Content
from millrace.streams.domain.privacy import Policy
from millrace.streams.ports import Announcement, VersionedRow

CHANGED = "privacy_policy_changed"
DEPLOYMENT = "deployment"
"""Who changed it: nobody with a token."""
PRIVACY = "privacy"
REMEMBERED = 4_096


def say_nothing(_identity: Identity) -> None:
    """For hubs whose policy nobody changes."""


@dataclass(frozen=True, slots=True)
class TellPolicy:
    announce: Announce
    audit: AuditLedger
    policy: Policy
    told: set[str] = field(default_factory=set)
    """Tenants whose record this process has found, or made, to be right."""

    def __call__(self, identity: Identity) -> None:
        """Durable on return: call it before the policy is applied."""
        if identity.tenant in self.told:
            return
        group, now = policy_group(identity.tenant), self.policy.stored()

        def decide(row: VersionedRow | None) -> tuple[Content, Announcement] | None:
            before: Any = row.content if row else Policy.of({}).stored()
            if before == now:
                return None
            draft = self.audit.entry(DEPLOYMENT, CHANGED, before=before, after=now)
            return now, Announcement(audit_ledger(identity.tenant), draft, DEPLOYMENT)

        row, changed = self.announce.change(group, PRIVACY, decide)
        if changed:
            self.announce.settle(group, PRIVACY, row)
        if len(self.told) >= REMEMBERED:
            self.told.clear()
        self.told.add(identity.tenant)


def policy_group(tenant: str) -> str:
    return join_key("policy", tenant)
