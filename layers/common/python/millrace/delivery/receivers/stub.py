"""Stub: a target without a team behind it, for CI, forks and a first try."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millrace.delivery.domain.outcomes import Answer, Response, judge
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.targets import BATCH_PATH, MOST_BYTES, MOST_EVENTS, Blocked
from millrace.delivery.receivers.inbox import StubInbox
from millrace.delivery.receivers.kind import Parts, ReceiverKind
from millrace.delivery.receivers.posting import BATCH_HEADERS, Outgoing, answered, batch_body, packed


@dataclass(frozen=True, slots=True)
class Stub:
    """
    No credentials, no gates.

    `answer` is what stands behind it: a `StubInbox` in this process, or one on localhost through `stub_at`.
    """

    answer: Callable[[bytes], Response]
    clock: Callable[[], int]
    most_events: int = MOST_EVENTS
    most_bytes: int = MOST_BYTES

    def gate(self) -> tuple[Blocked, str] | None:
        return None

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        return answered(lambda: self.answer(batch_body(picks)), picks, self.clock, judge)


def stub_at(url: str, outbound: Outgoing) -> Callable[[bytes], Response]:
    """A stub that listens on localhost."""
    address = url.rstrip("/") + BATCH_PATH
    return lambda body: outbound.post(address, BATCH_HEADERS, packed(body))


def build(parts: Parts) -> Stub:
    return Stub(stub_at(parts.url, parts.outbound) if parts.url else StubInbox(), parts.clock)


KIND = ReceiverKind("stub", needs_url=False, local=True, build=build)
