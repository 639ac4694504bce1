"""How a live event looks on the wire: `event_broadcast` for the sync contract, `event` for a subscription."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import split_key
from millrace.ledger.domain.page import Event
from millrace.ledger.domain.tracing import HEADER
from millrace.live.domain import dialects
from millrace.live.domain.messages import PROTOCOL, SocketError, error_message, message, to_text
from millrace.streams.domain.envelope import without_nulls
from millrace.streams.domain.errors import StreamDegraded
from millrace.streams.domain.gap import gap_event
from millrace.sync.domain.read import as_it_came, event_json

SYNC = "sync"
"""The id of a connection's one subscription by `sync`; others are made up when they are made."""
KEPT_TEXTS = 256
POSITION_NAMES = {"realtime": "sequence", "streams": "seq_no"}


class Renderer:
    """A live event's text for a subscription. What many connections get alike is made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str, str, int], str] = {}

    def __call__(self, to: Addressee, event: Event) -> str:
        if to.id != SYNC:
            return subscribed_event(to.dialect, to.project, to.id, "live", to.ledger, event)
        key = (to.ledger, to.dialect, to.project, event.position)
        if key not in self._made:
            if len(self._made) >= KEPT_TEXTS:
                self._made.clear()
            self._made[key] = broadcast(to.dialect, to.project, event)
        return self._made[key]


class Addressee(Protocol):
    """What of a subscription matters for how its events look."""

    @property
    def id(self) -> str: ...
    @property
    def ledger(self) -> str: ...
    @property
    def dialect(self) -> str: ...
    @property
    def project(self) -> str: ...


def broadcast(dialect: str, project: str, event: Event) -> str:
    if dialect == dialects.SNAKE:
        trace = f',"{HEADER}":"{event.origin.trace}"' if event.origin.trace else ""
        return f'{{"type":"event_broadcast","protocol_version":"{PROTOCOL}","payload":{event_json(event)}{trace}}}'
    built = message("event_broadcast", as_it_came(event)) | _traced(event)
    return to_text(dialects.write(dialect, built, project=project))


def subscribed_event(dialect: str, project: str, subscription_id: str, phase: str, ledger: str, event: Event) -> str:
    """The contract's own event object, with its position under the contract's own name."""
    body = event.record.body or b"{}"
    contract = split_key(ledger)[0]
    content: dict[str, Any] = json.loads(without_nulls(body) if contract == "streams" else body)
    content[POSITION_NAMES[contract]] = event.position
    payload = {"subscription_id": subscription_id, "phase": phase, "event": content}
    return to_text(dialects.write(dialect, message("event", payload) | _traced(event), project=project))


def _traced(event: Event) -> dict[str, str]:
    """Beside the payload: the call in which the event came, if its caller said which."""
    return {HEADER: event.origin.trace} if event.origin.trace else {}


def gap(dialect: str, project: str, subscription_id: str, phase: str, event: Mapping[str, Any]) -> str:
    """A StreamGap of the hub's own, as a subscription gets it."""
    payload = {"subscription_id": subscription_id, "phase": phase, "event": event}
    return to_text(dialects.write(dialect, message("event", payload), project=project))


def overtaken(to: Addressee, expected: int, observed: int, now_ms: int, watermark: int = 0) -> list[str]:
    """What a subscription is told when history it has not seen is gone (T7): the gap, if it is a stream, and an error.

    `expected` is the first position it missed, `observed` the first that may still be there.
    """
    texts, names = [], split_key(to.ledger)
    if names[0] == "streams":
        phase = "snapshot" if observed - 1 <= watermark else "live"
        lost = gap_event(names[2], names[3], expected, observed, now_ms)
        texts.append(gap(to.dialect, to.project, to.id, phase, lost))
        text = "The subscription has ended: events it had not been sent were pruned. Subscribe again."
        error = error_message(StreamDegraded(text, subscription_id=to.id, floor_seq_no=observed))
    else:
        text = "The subscription has ended: events it had not been sent were pruned. Replay what is retained."
        error = error_message(BadRequest(text, subscription_id=to.id, prunedThrough=observed - 1))
    return [*texts, to_text(dialects.write(to.dialect, error, project=to.project))]


def expired(dialect: str, project: str) -> str:
    error = SocketError("auth_failed", "The token has expired; connect again with a new one.", claim="exp")
    return to_text(dialects.write(dialect, error_message(error), project=project))
