"""How large a page is if deflating saves nothing: computed by DynamoDB's size rules from the item itself."""

from __future__ import annotations

from typing import Any

from millrace.ledger.adapters.dynamodb.log import _item
from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.packing import RAW, _columns
from tests.bench.events import CONTENT_BYTES, drafts, items
from tests.bench.rig import page_of
from tests.bench.sizes import item_size, write_units

LEDGER = Ledger.of("sync", "default", "bench-0000")


def _size(events: int) -> int:
    page = page_of(drafts("random", events, 1), 900)
    item = _item(LEDGER, page)
    item["e"] = {"B": RAW + _columns(page.records)}
    return item_size(item)


def undeflated_units(events: int) -> float:
    """Claims and page of a batch, per event."""
    return round(1 + write_units(_size(events)) / events, 3)


def overhead(events: int) -> float:
    """What a page stores per event beside its 500 bytes: id (36 bytes), digest, partition, lengths, the item's rest."""
    content = sum(len(canonical(item["event"])) for item in items("random", events, 1))
    assert content == CONTENT_BYTES * events
    return round((_size(events) - content) / events, 1)


def overhead_row(events: int) -> dict[str, Any]:
    return {
        "events": events,
        "overhead per event, bytes": overhead(events),
        "write units per event": undeflated_units(events),
    }
