"""What a request is told of a page that it shares, and what such a page may hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event, Page
from tests.simulation.history import Answer, History, broken, chain
from tests.simulation.line import Line, Sent, number_of
from tests.simulation.tables import Tables


def check_line(line: Line, history: History, tables: Tables, ledgers: Iterable[Ledger]) -> None:
    for ledger in ledgers:
        pages = chain(tables, ledger)
        events = {event.record.id: event for page in pages for event in page.events()}
        brought: dict[int, list[Event]] = {}
        for page in pages:
            _check_page(page, line, ledger)
            for event in page.events():
                brought.setdefault(number_of(event.nonce), []).append(event)
        for number, own in brought.items():
            _check_request(line.sent[number], own, events, tables)
        for answer in history.answers:
            if answer.ledger == ledger:
                _check_fresh(answer, events)


def _check_page(page: Page, line: Line, ledger: Ledger) -> None:
    """Each event is of the request it names, which had not ended when a leader took it."""
    for event in page.events():
        sent = line.of(event.nonce)
        draft = sent.first_of_each().get(event.record.id)
        broken(draft is None or draft.digest != event.record.digest, "an event of another request:", event.record.id)
        broken(sent.ledger != ledger, "a request of another ledger:", event.record.id, sent.ledger.name, ledger.name)
        broken(sent.origin != event.origin, "an event of another client:", event.record.id, event.origin)
    for part in page.parts:
        if number_of(part.nonce) != number_of(page.nonce):
            row = line.room.left[ledger.name, part.nonce]
            broken(page.time_ms >= row.ends_ms, "a request was absorbed after its end:", page.time_ms, row.ends_ms)


def _check_request(sent: Sent, own: Sequence[Event], events: dict[str, Event], tables: Tables) -> None:
    """Positions ascend in the order sent, and nothing is left out before them; a conflict stops whom it is to stop."""
    order = list(sent.first_of_each())
    numbers = [order.index(event.record.id) for event in own]
    broken(numbers != sorted(numbers), "the order within a request was lost:", [event.record.id for event in own])
    for number, id_ in enumerate(order[: max(numbers)]):
        there = events.get(id_)
        conflict = there is None or there.record.digest != sent.first_of_each()[id_].digest
        bound = tables.claims.items[sent.ledger.dedupe_scope, id_].ledger == sent.ledger.name
        broken(there is None and bound, "an event was left out of its request:", id_)
        broken(conflict and sent.stops, "something was committed after a conflict:", id_, order[number + 1 :])


def _check_fresh(answer: Answer, events: dict[str, Event]) -> None:
    """Exactly the request that brought an event is told that it is fresh."""
    if answer.outcome.position is not None:
        own = number_of(events[answer.draft.id].nonce) == answer.request
        broken(answer.outcome.fresh != own, "freshness:", answer.draft.id, answer.outcome, "is its own:", own)
