"""The three kinds of target behind one contract: Teamspace, external and stub (D7). They differ in what they say, not
in what an answer means."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from millrace.delivery.adapters.outbound import NoAnswer, Outbound, Unreached
from millrace.delivery.domain import signing
from millrace.delivery.domain.outcomes import Answer, Response, held, judge, judge_webhook, unreached
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.targets import BATCH_PATH, MOST_BYTES, MOST_EVENTS, Blocked

Gate = Callable[[], tuple[Blocked, str] | None]


@dataclass(frozen=True, slots=True)
class Teamspace:
    """A hosted hub: the batch API under its URL, a bearer token, and gates that are not ours to decide."""

    url: str
    token: str = field(repr=False)
    outbound: Outbound
    gates: Gate
    clock: Callable[[], int]
    most_events: int = MOST_EVENTS
    most_bytes: int = MOST_BYTES

    def gate(self) -> tuple[Blocked, str] | None:
        return self.gates()

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        url = self.url.rstrip("/") + BATCH_PATH
        headers = {**BATCH_HEADERS, "Authorization": f"Bearer {self.token}"}
        return _post(self.outbound, url, headers, _packed(batch_body(picks)), picks, self.clock, judge)


@dataclass(frozen=True, slots=True)
class External:
    """An operator's URL, taken as given. Requests are signed with each of `secrets`; the newest comes first."""

    url: str
    secrets: Sequence[str] = field(repr=False)
    outbound: Outbound
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
        if not self.secrets:
            return Blocked.ENDPOINT_MISSING, "the target has no signing secret"
        return None

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        body = picks[0].body if self.webhook else batch_body(picks)
        message_id = signing.message_id([pick.event_id for pick in picks])
        headers = signing.headers(message_id, self.clock() // 1000, body, self.secrets)
        headers |= {"Authorization": self.authorization} if self.authorization else {}
        if self.webhook:
            return _post(self.outbound, self.url, {**headers, **JSON}, body, picks, self.clock, judge_webhook)
        return _post(self.outbound, self.url, {**headers, **BATCH_HEADERS}, _packed(body), picks, self.clock, judge)


@dataclass(frozen=True, slots=True)
class Stub:
    """
    A target without a team behind it, for CI, forks and a first try: no credentials, no gates.

    `answer` is what stands behind it: a `StubInbox` in this process, or one on localhost through `stub_at`.
    """

    answer: Callable[[bytes], Response]
    clock: Callable[[], int]
    most_events: int = MOST_EVENTS
    most_bytes: int = MOST_BYTES

    def gate(self) -> tuple[Blocked, str] | None:
        return None

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        return _judged(lambda: self.answer(batch_body(picks)), picks, self.clock, judge)


def stub_at(url: str, outbound: Outbound) -> Callable[[bytes], Response]:
    """A stub that listens on localhost."""
    address = url.rstrip("/") + BATCH_PATH
    return lambda body: outbound.post(address, BATCH_HEADERS, _packed(body))


JSON: Mapping[str, str] = {"Content-Type": "application/json"}
BATCH_HEADERS: Mapping[str, str] = {**JSON, "Content-Encoding": "gzip"}

Judge = Callable[[Response, Collection[str], int], Answer]


def batch_body(picks: Sequence[Pick]) -> bytes:
    """The events byte for byte as they were captured."""
    return b'{"events":[' + b",".join(pick.body for pick in picks) + b"]}"


def _packed(body: bytes) -> bytes:
    return gzip.compress(body, 6, mtime=0)


def _post(
    outbound: Outbound,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    picks: Sequence[Pick],
    clock: Callable[[], int],
    judged_by: Judge,
) -> Answer:
    return _judged(lambda: outbound.post(url, headers, body), picks, clock, judged_by)


def _judged(ask: Callable[[], Response], picks: Sequence[Pick], clock: Callable[[], int], judged_by: Judge) -> Answer:
    try:
        response = ask()
    except Unreached as error:
        return unreached(error.message)
    except NoAnswer as error:
        return held(error.message)
    return judged_by(response, [pick.event_id for pick in picks], clock())
