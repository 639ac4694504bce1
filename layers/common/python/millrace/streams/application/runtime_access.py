"""Who may act on a runtime, and whether it has negotiated. Every door of the streams contract asks here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.access import CONSUMER, PRODUCER, Identity, runtime_partition
from millrace.streams.domain.envelope import check_id, check_new
from millrace.streams.domain.errors import InvalidState
from millrace.streams.domain.negotiate import Negotiated, negotiate
from millrace.streams.ports import Runtimes, RuntimeState


def require_runtime(identity: Identity, runtime_id: str) -> None:
    check_id("runtime_id", runtime_id)
    identity.require_reach(runtime_partition(runtime_id), "this runtime", field="runtime_id")


def require_negotiated(runtime: RuntimeState) -> Negotiated:
    if runtime.negotiated is None:
        raise InvalidState("The runtime has not negotiated yet; negotiate first.", field="runtime_id")
    return runtime.negotiated


@dataclass(frozen=True, slots=True)
class Negotiate:
    runtimes: Runtimes

    def __call__(self, identity: Identity, runtime_id: str, asked: Any) -> dict[str, Any]:
        if PRODUCER not in identity.roles:
            identity.require(CONSUMER)
        require_runtime(identity, runtime_id)
        check_new(tenant=identity.tenant, runtime_id=runtime_id)
        negotiated = negotiate(asked)
        self.runtimes.negotiate(identity.tenant, runtime_id, negotiated)
        return negotiated.answer(runtime_id)
