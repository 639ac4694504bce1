"""From a hub's target to its receiver, with the secrets it needs, as long as its drain may send."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from millrace.delivery.domain.addresses import Reach
from millrace.delivery.domain.hub_targets import HubTarget, SecretSet
from millrace.delivery.domain.outcomes import Answer, not_sent
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.targets import Blocked
from millrace.delivery.ports.deliveries import DeliveryReceiver
from millrace.delivery.ports.targets import Secrets
from millrace.delivery.receivers.kind import Parts, ReceiverKind
from millrace.delivery.receivers.posting import Outgoing


@dataclass(frozen=True, slots=True)
class HubReceivers:
    kinds: Mapping[str, ReceiverKind]
    secrets: Secrets
    outbound: Callable[[Reach], Outgoing]
    clock: Callable[[], int]
    loopback: bool

    def __call__(self, target: HubTarget, may_send: Callable[[], bool]) -> DeliveryReceiver:
        kind, now_ms = self.kinds[target.kind], self.clock()
        secrets = SecretSet.of(self.secrets.open(target.key, target.sealed))
        parts = Parts(
            url=target.url,
            outbound=self.outbound(kind.reach(loopback=self.loopback)),
            clock=self.clock,
            webhook=target.webhook,
            auth=secrets.auth,
            signing=secrets.signing_at(now_ms),
        )
        return Guarded(kind.build(parts), may_send)


@dataclass(frozen=True, slots=True)
class Guarded:
    """Asks before each request whether it may be sent: a batch in many parts can outlast its drain's time or lease."""

    receiver: DeliveryReceiver
    may_send: Callable[[], bool]

    @property
    def most_events(self) -> int:
        return self.receiver.most_events

    @property
    def most_bytes(self) -> int:
        return self.receiver.most_bytes

    def gate(self) -> tuple[Blocked, str] | None:
        return self.receiver.gate()

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        return self.receiver.deliver(picks) if self.may_send() else not_sent()
