"""Events of a ledger as an operator sees them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from millrace_client.operator.http import OperatorHttp, ledger_path


@dataclass(frozen=True, slots=True)
class EventView:
    position: int
    id: str
    committed_ms: int
    type: str | None
    partitions: Sequence[str]
    client_id: str
    pruned: bool
    """Its content is gone."""
    bytes: int | None
    content: Any

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        return cls(
            position=told["position"],
            id=told["id"],
            committed_ms=told["committed_ms"],
            type=told["type"],
            partitions=tuple(told["partitions"]),
            client_id=told["by"]["client_id"],
            pruned=told["pruned"],
            bytes=told.get("bytes"),
            content=told.get("content"),
        )


@dataclass(frozen=True, slots=True)
class EventPageView:
    events: Sequence[EventView]
    next_after: int
    """How far was looked."""
    head: int
    floor: int


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """What became of an event at a target."""

    target_id: str
    state: str
    attempts: int
    first_ms: int | None
    last_ms: int | None
    next_ms: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Events:
    http: OperatorHttp

    def page(
        self,
        contract: str,
        scope: str,
        after: int | None = None,
        *,
        at_ms: int | None = None,
        partition: str | None = None,
        type: str | None = None,  # noqa: A002
        limit: int | None = None,
    ) -> EventPageView:
        """The next events after a position, or from a time on."""
        query = {"after": after, "at_ms": at_ms, "partition": partition, "type": type, "max": limit}
        told = self.http.get(f"{ledger_path(contract, scope)}/events", query)
        events = tuple(map(EventView.of, told["events"]))
        return EventPageView(events, told["next_after"], told["head"], told["floor"])

    def list(self, contract: str, scope: str, after: int = 0, **chosen: Any) -> Iterator[EventView]:
        """All of them up to the head; `chosen` as in `page`."""
        while True:
            page = self.page(contract, scope, after, **chosen)
            yield from page.events
            if page.next_after >= page.head or page.next_after == after:
                return
            after = page.next_after

    def find(self, contract: str, scope: str, event_id: str) -> tuple[EventView, Sequence[DeliveryView]]:
        """The event, and which target has it."""
        told = self.http.get(f"{ledger_path(contract, scope)}/event", {"id": event_id})
        return EventView.of(told["event"]), tuple(DeliveryView(**one) for one in told["deliveries"])
