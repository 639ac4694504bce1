"""Who may act on a runtime, and what the session has negotiated. Every door of the streams contract asks here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millrace.ledger.application.audit import AuditLedger
from millrace.ledger.domain.access import CONSUMER, PRODUCER, Identity, runtime_partition
from millrace.streams.domain.envelope import check_id, check_new
from millrace.streams.domain.errors import InvalidState
from millrace.streams.domain.negotiate import Negotiated, negotiate
from millrace.streams.ports import Runtimes


def require_runtime(identity: Identity, runtime_id: str) -> None:
    check_id("runtime_id", runtime_id)
    identity.require_reach(runtime_partition(runtime_id), "this runtime", field="runtime_id")


def require_negotiated(negotiated: Negotiated | None) -> Negotiated:
    if negotiated is None:
        raise InvalidState("This client has not negotiated with the runtime yet; negotiate first.", field="runtime_id")
    return negotiated


@dataclass(frozen=True, slots=True)
class Negotiate:
    """A negotiation belongs to a session: a runtime and a client. One client's never changes another's (T5)."""

    runtimes: Runtimes
    audit: AuditLedger

    def __call__(self, identity: Identity, runtime_id: str, asked: Any) -> dict[str, Any]:
        """Recorded before it takes effect."""
        _enter(identity, runtime_id)
        check_new(tenant=identity.tenant, runtime_id=runtime_id)
        negotiated = negotiate(asked)
        self.audit.record(identity, "negotiated", runtime_id, **negotiated.stored())
        self.runtimes.negotiate(identity.tenant, runtime_id, identity.client_id, negotiated)
        return negotiated.answer(runtime_id)

    def effective(self, identity: Identity, runtime_id: str) -> dict[str, Any]:
        """What holds for this client now, as its negotiation was answered."""
        _enter(identity, runtime_id)
        found = self.runtimes.session(identity.tenant, runtime_id, identity.client_id)
        return require_negotiated(found).answer(runtime_id)


def _enter(identity: Identity, runtime_id: str) -> None:
    if PRODUCER not in identity.roles:
        identity.require(CONSUMER)
    require_runtime(identity, runtime_id)
