"""Delivery transitions (T4): which state of a message may follow which, and what a row remembers of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.streams.domain.envelope import Emission, invalid
from millrace.streams.domain.errors import AlreadyTerminal, Conflict, InvalidState
from millrace.streams.domain.negotiate import RECEIPT_TERMINALITY, Negotiated

RANKS = {"queued": 0, "dispatching": 1, "in_flight": 2, "sent": 3, "delivered": 4}
ENDS = frozenset({"delivered", "failed", "cancelled", "expired", "rejected"})
STATES = (*RANKS, *sorted(ENDS - RANKS.keys()))

Row = Mapping[str, Any]
"""`state`, whether it is `terminal`, and `events`: state → [stream_id, event_id, digest] of every transition so far."""


def target_state(emission: Emission) -> str:
    to = emission.event["payload"].get("to")
    if not isinstance(to, str) or to not in STATES:
        raise invalid("payload.to", f"payload.to must be one of {', '.join(STATES)}.", to)
    return to


def known_before(row: Row, emission: Emission) -> bool:
    """Whether this very event has passed here already; the same id with other content is a conflict."""
    for stream_id, event_id, digest in row.get("events", {}).values():
        if stream_id == emission.event["stream_id"] and event_id == emission.draft.id:
            drafts = [emission.draft, emission.earlier] if emission.earlier else [emission.draft]
            if digest not in [draft.digest.hex() for draft in drafts]:
                raise conflict()
            return True
    return False


def advance(row: Row, emission: Emission, negotiated: Negotiated) -> Row:
    """The row after the transition; raises when it may not follow."""
    to, now = target_state(emission), row.get("state")
    forward = now is None or RANKS.get(to, len(RANKS)) > RANKS.get(now, len(RANKS))
    if row.get("terminal"):
        raise _already_terminal(str(now), to, would_follow=now not in ENDS and forward)
    if not forward:
        raise InvalidState(f"A message that is {now} cannot become {to}.", domain="delivery", state=now, to=to)
    ends = to in ENDS or (to == "sent" and RECEIPT_TERMINALITY not in negotiated.capabilities)
    parts = [emission.event["stream_id"], emission.draft.id, emission.draft.digest.hex()]
    passed = {**row.get("events", {}), to: parts}
    return {"state": to, "terminal": ends, "events": passed}


def _already_terminal(now: str, to: str, *, would_follow: bool) -> AlreadyTerminal:
    """`would_follow`: the message ended only because its session had not negotiated that it goes on to its receipt."""
    if not would_follow:
        return AlreadyTerminal(f"The message is {now}; nothing follows.", domain="delivery", state=now, to=to)
    return AlreadyTerminal(
        f"The message is {now}, and that was its end: its session had not negotiated {RECEIPT_TERMINALITY}, which lets"
        f" {to} follow. Negotiate it before a message becomes {now}.",
        domain="delivery",
        state=now,
        to=to,
        capability=RECEIPT_TERMINALITY,
    )


def undone(row: Row) -> Row:
    """The row before its last transition, whose event turned out to belong to other content."""
    events = dict(row["events"])
    events.pop(row["state"])
    before = list(events)
    return {"state": before[-1], "terminal": False, "events": events} if before else {}


def conflict() -> Conflict:
    return Conflict("This event_id belongs to an event with other content.", domain="event", field="event_id")
