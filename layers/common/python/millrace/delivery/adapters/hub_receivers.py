"""From a hub's target to its receiver, with the secrets it needs and no more time than the function has left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millrace.delivery.adapters.outbound import Outbound
from millrace.delivery.adapters.receivers import External, Stub, Teamspace, stub_at
from millrace.delivery.adapters.stub_inbox import StubInbox
from millrace.delivery.domain.hub_targets import HubTarget, SecretSet
from millrace.delivery.domain.outcomes import Answer, unreached
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.targets import Blocked, Kind
from millrace.delivery.ports.deliveries import DeliveryReceiver
from millrace.delivery.ports.targets import Secrets


@dataclass(frozen=True, slots=True)
class HubReceivers:
    secrets: Secrets
    outbound: Outbound
    local: Outbound
    """For stubs, which live on this machine or nowhere."""
    clock: Callable[[], int]
    has_time: Callable[[], bool]

    def __call__(self, target: HubTarget) -> DeliveryReceiver:
        return Hurried(self._receiver(target), self.has_time)

    def _receiver(self, target: HubTarget) -> DeliveryReceiver:
        secrets = SecretSet.of(self.secrets.open(target.key, target.sealed))
        if target.kind is Kind.TEAMSPACE:
            return Teamspace(target.url, secrets.auth, self.outbound, lambda: None, self.clock)
        if target.kind is Kind.EXTERNAL:
            signing = secrets.signing_at(self.clock())
            return External(target.url, signing, self.outbound, self.clock, secrets.auth, target.webhook)
        return Stub(stub_at(target.url, self.local) if target.url else StubInbox(), self.clock)


@dataclass(frozen=True, slots=True)
class Hurried:
    """A batch in many parts can take longer than a function lives: what it could not finish was not attempted."""

    receiver: DeliveryReceiver
    has_time: Callable[[], bool]

    @property
    def most_events(self) -> int:
        return self.receiver.most_events

    @property
    def most_bytes(self) -> int:
        return self.receiver.most_bytes

    def gate(self) -> tuple[Blocked, str] | None:
        return self.receiver.gate()

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        return self.receiver.deliver(picks) if self.has_time() else unreached("the function's time was over")
