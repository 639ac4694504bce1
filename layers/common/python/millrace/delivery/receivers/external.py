"""External: an operator's own endpoint, for batches or as a webhook; requests are signed if it has a secret (D12)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from millrace.delivery.domain import signing
from millrace.delivery.domain.outcomes import Answer, judge, judge_webhook
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.targets import MOST_BYTES, MOST_EVENTS, Blocked
from millrace.delivery.receivers.kind import Parts, ReceiverKind
from millrace.delivery.receivers.posting import BATCH_HEADERS, JSON, Outgoing, answered, batch_body, packed, traced


@dataclass(frozen=True, slots=True)
class External:
    """The URL is taken as given. Requests are signed with each of `secrets`, if any; the newest comes first."""

    url: str
    secrets: Sequence[str] = field(repr=False)
    outbound: Outgoing
    clock: Callable[[], int]
    authorization: str = field(default="", repr=False)
    webhook: bool = False
    most_bytes: int = MOST_BYTES

    @property
    def most_events(self) -> int:
        return 1 if self.webhook else MOST_EVENTS

    def gate(self) -> tuple[Blocked, str] | None:
        if not self.url:
            return Blocked.ENDPOINT_MISSING, "the target has no url"
        return None

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        body = picks[0].body if self.webhook else batch_body(picks)
        message_id = signing.message_id([pick.event_id for pick in picks])
        headers = signing.headers(message_id, self.clock() // 1000, body, self.secrets)
        headers |= {"Authorization": self.authorization} if self.authorization else {}
        headers |= traced(picks)
        if self.webhook:
            return self._post({**headers, **JSON}, body, picks)
        return self._post({**headers, **BATCH_HEADERS}, packed(body), picks)

    def _post(self, headers: dict[str, str], body: bytes, picks: Sequence[Pick]) -> Answer:
        judged_by = judge_webhook if self.webhook else judge
        return answered(lambda: self.outbound.post(self.url, headers, body), picks, self.clock, judged_by)


def build(parts: Parts) -> External:
    return External(
        url=parts.url,
        secrets=parts.signing,
        outbound=parts.outbound,
        clock=parts.clock,
        authorization=parts.auth,
        webhook=parts.webhook,
    )


KIND = ReceiverKind("external", takes_webhook=True, auth="its whole Authorization header", signed=True, build=build)
