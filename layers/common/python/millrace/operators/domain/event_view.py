"""An event as an operator sees it: where it is, who committed it when, and its content if it is still there."""

from __future__ import annotations

import json
from typing import Any

from millrace.lake.domain.wrapping import CATALOG, SYNC, wrap
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event
from millrace.ledger.domain.tracing import HEADER
from millrace.sync.domain.as_sent import split


def may_see(identity: Identity, ledger: Ledger, event: Event) -> bool:
    """Of a project, the events of partitions that the bearer reaches; other ledgers are reached as a whole."""
    if ledger.contract != SYNC or identity.sees_everything:
        return True
    return any(identity.reaches(partition) for partition in event.record.partitions)


def type_of(ledger: Ledger, event: Event) -> str | None:
    """As its contract calls it. None if the event was pruned."""
    if event.record.body is None:
        return None
    kind = wrap(ledger.name, event.record, event.position, event.time_ms).event_type
    return kind if ledger.contract == CATALOG else kind.removeprefix(f"{ledger.contract}.")


def event_json(ledger: Ledger, event: Event) -> dict[str, Any]:
    body = event.record.body
    shown: dict[str, Any] = {
        "position": event.position,
        "id": event.record.id,
        "committed_ms": event.time_ms,
        "type": type_of(ledger, event),
        "partitions": list(event.record.partitions),
        "by": {"client_id": event.origin.client_id, **({HEADER: event.origin.trace} if event.origin.trace else {})},
        "pruned": body is None,
    }
    if body is not None:
        text = split(body)[1] if ledger.contract == SYNC else body.decode()
        shown |= {"bytes": len(body), "content": json.loads(text)}
    return shown
