"""Teamspace: a hosted hub, with a bearer token and gates that are not ours to decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from millrace.delivery.domain.outcomes import Answer, judge
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.targets import BATCH_PATH, MOST_BYTES, MOST_EVENTS, Blocked
from millrace.delivery.receivers.kind import Gate, Parts, ReceiverKind
from millrace.delivery.receivers.posting import BATCH_HEADERS, Outgoing, answered, batch_body, packed, traced


@dataclass(frozen=True, slots=True)
class Teamspace:
    """The batch API under its URL."""

    url: str
    token: str = field(repr=False)
    outbound: Outgoing
    gates: Gate
    clock: Callable[[], int]
    most_events: int = MOST_EVENTS
    most_bytes: int = MOST_BYTES

    def gate(self) -> tuple[Blocked, str] | None:
        return self.gates()

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        url = self.url.rstrip("/") + BATCH_PATH
        headers = {**BATCH_HEADERS, "Authorization": f"Bearer {self.token}", **traced(picks)}
        body = packed(batch_body(picks))
        return answered(lambda: self.outbound.post(url, headers, body), picks, self.clock, judge)


def build(parts: Parts) -> Teamspace:
    return Teamspace(
        url=parts.url, token=parts.auth, outbound=parts.outbound, gates=parts.login_gate, clock=parts.clock
    )


KIND = ReceiverKind("teamspace", auth="its bearer token", needs_auth=True, is_login=True, build=build)
