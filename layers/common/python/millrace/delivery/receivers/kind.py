"""What a module of this package states about its type of target: the rules for an operator, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from millrace.delivery.domain.kinds import Kind
from millrace.delivery.domain.targets import Blocked
from millrace.delivery.ports.deliveries import DeliveryReceiver
from millrace.delivery.receivers.posting import Outgoing

Gate = Callable[[], tuple[Blocked, str] | None]


def open_gate() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Parts:
    """What receivers are built from, by the hub and by the client; each takes what it needs."""

    url: str
    outbound: Outgoing
    """Reaches as far as the kind may."""
    clock: Callable[[], int]
    webhook: bool = False
    auth: str = field(default="", repr=False)
    signing: Sequence[str] = field(default=(), repr=False)
    """The newest comes first."""
    login_gate: Gate = open_gate
    """Why the login of a client does not let anything be sent now. A hub has no such gate."""


@dataclass(frozen=True, slots=True)
class ReceiverKind(Kind):
    build: Callable[[Parts], DeliveryReceiver] = field(kw_only=True)
