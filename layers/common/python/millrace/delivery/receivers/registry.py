"""The registry of receivers: every type of target that the hub and the client know. A new one is a line here."""

from __future__ import annotations

from millrace.delivery.receivers import external, stub, teamspace
from millrace.delivery.receivers.kind import ReceiverKind

KINDS = (
    teamspace.KIND,
    external.KIND,
    stub.KIND,
)

RECEIVERS: dict[str, ReceiverKind] = {kind.name: kind for kind in KINDS}
