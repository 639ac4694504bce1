"""How receivers send: events into a body, the body over the way out, and the answer to whoever judges it (D8)."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from millrace.delivery.domain.outcomes import Answer, Response, held, unreached
from millrace.delivery.domain.selection import Pick
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.tracing import HEADER

JSON: Mapping[str, str] = {"Content-Type": "application/json"}
BATCH_HEADERS: Mapping[str, str] = {**JSON, "Content-Encoding": "gzip"}

Judge = Callable[[Response, Collection[str], int], Answer]


class Unreached(Unavailable):
    """No connection: nothing was sent."""


class NoAnswer(Unavailable):
    """Sent, perhaps in part, and not answered in full: the target may or may not have it."""


class Outgoing(Protocol):
    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Raises `Unreached` or `NoAnswer`."""


def batch_body(picks: Sequence[Pick]) -> bytes:
    """The events byte for byte as they were captured."""
    return b'{"events":[' + b",".join(pick.body for pick in picks) + b"]}"


def traced(picks: Sequence[Pick]) -> dict[str, str]:
    """The header of a request whose events all came in one call; those of several calls have no common one."""
    traces = {pick.trace for pick in picks}
    return {HEADER: trace} if len(traces) == 1 and (trace := traces.pop()) else {}


def packed(body: bytes) -> bytes:
    return gzip.compress(body, 6, mtime=0)


def answered(ask: Callable[[], Response], picks: Sequence[Pick], clock: Callable[[], int], judge: Judge) -> Answer:
    """What the answer to these events comes to, or that there was none."""
    try:
        response = ask()
    except Unreached as error:
        return unreached(error.message)
    except NoAnswer as error:
        return held(error.message)
    return judge(response, [pick.event_id for pick in picks], clock())
