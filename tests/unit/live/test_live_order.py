"""S11, S17: whatever arrives in whatever order, each event is handed out once, by committed_id."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace_client.sync.order import Order
from millrace_client.sync.protocol import Lost

Json = dict[str, Any]

ACTIONS = ("commit", "commit_other", "deliver", "repeat", "lose", "step", "step", "reconnect")


def event(position: int) -> Json:
    return {"committed_id": position, "id": f"e{position}"}


def page(events: list[int], through: int, sync_to: int, has_more: bool = False) -> Json:
    return {
        "events": [event(position) for position in events],
        "next_since_committed_id": through,
        "sync_to_committed_id": sync_to,
        "has_more": has_more,
    }


class Model:
    """A hub and a client without a network: `step` is the client's turn."""

    def __init__(self, gapless: bool, room: int, page_size: int) -> None:
        self.gapless, self.room, self.page_size = gapless, room, page_size
        self.head = 0
        self.wanted: list[int] = []
        self.queue: deque[int] = deque()
        self.sent: list[int] = []
        self.out: list[int] = []
        self.order = Order(0, gapless=gapless, room=room)
        self.sync_to: int | None = None
        self.subscribed = False

    def connect(self) -> None:
        """All that was in flight is gone; we start from what was handed out."""
        self.order = Order(self.order.last, gapless=self.gapless, room=self.room)
        self.queue.clear()
        self.sent.clear()
        self.sync_to = None
        self.subscribed = False

    def commit(self, ours: bool) -> None:
        self.head += 1
        if ours or self.gapless:
            self.wanted.append(self.head)
            if self.subscribed:
                self.queue.append(self.head)

    def deliver(self) -> None:
        if self.queue:
            self.sent.append(self.queue.popleft())
            self.order.heard(event(self.sent[-1]))

    def step(self) -> None:
        if not self.order.syncing:
            batch = self.order.ready()
        else:
            since = self.order.request()
            self.subscribed = True
            self.sync_to = self.head if self.sync_to is None else self.sync_to
            found = [position for position in self.wanted if since < position <= self.sync_to]
            has_more = len(found) > self.page_size
            found = found[: self.page_size]
            batch = self.order.page(page(found, found[-1] if has_more else self.sync_to, self.sync_to, has_more))
            self.sync_to = self.sync_to if has_more else None
        if batch:
            self.out += [given["committed_id"] for given in batch.events]
            assert batch.cursor >= max([0, *self.out])

    def act(self, action: str, choice: int) -> None:
        if action in {"commit", "commit_other"}:
            self.commit(action == "commit")
        elif action == "deliver":
            self.deliver()
        elif action == "repeat" and self.sent:
            self.order.heard(event(self.sent[choice % len(self.sent)]))
        elif action == "lose" and self.gapless and self.queue:
            # Only a whole project's reader can see this from the positions.
            self.queue.popleft()
        elif action == "step":
            self.step()
        elif action == "reconnect":
            self.connect()

    def finish(self) -> None:
        self.commit(ours=True)
        while self.queue:
            self.deliver()
        for _ in range(3 * self.head + 10):
            self.step()


@settings(max_examples=500)
@given(
    st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 50)), max_size=80),
    st.booleans(),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_every_event_is_handed_out_once_and_in_order(
    actions: list[tuple[str, int]], gapless: bool, room: int, page_size: int
) -> None:
    model = Model(gapless, room, page_size)
    for action, choice in actions:
        model.act(action, choice)
    model.finish()
    assert model.out == model.wanted


def test_a_broadcast_above_the_watermark_waits_for_the_last_page() -> None:
    order = Order(0)
    order.request()
    order.heard(event(5))
    assert [e["committed_id"] for e in order.page(page([1, 2], 2, 4, has_more=True)).events] == [1, 2]
    assert order.syncing
    assert [e["committed_id"] for e in order.page(page([4], 4, 4)).events] == [4]
    batch = order.ready()
    assert batch is not None
    assert (batch.events, batch.cursor) == ([event(5)], 5)


def test_a_broadcast_at_or_below_the_watermark_is_not_repeated() -> None:
    order = Order(0)
    order.request()
    order.heard(event(2))
    assert [e["committed_id"] for e in order.page(page([1, 2], 3, 3)).events] == [1, 2]
    order.heard(event(2))
    assert order.ready() is None


def test_a_page_that_starts_too_early_is_not_repeated() -> None:
    order = Order(2)
    order.request()
    assert order.page(page([1, 2, 3], 3, 3)).events == [event(3)]


def test_a_full_buffer_is_let_go_and_read_again() -> None:
    order = Order(0, room=1)
    order.request()
    order.page(page([], 0, 0))
    order.heard(event(1))
    order.heard(event(2))
    assert order.syncing
    assert order.ready() is None
    assert order.request() == 0


def test_a_jump_in_a_whole_project_is_read_again() -> None:
    order = Order(0, gapless=True)
    order.request()
    order.page(page([1], 1, 1))
    order.heard(event(3))
    assert order.ready() is None
    assert order.syncing


def test_a_page_that_leads_nowhere_is_not_asked_for_for_ever() -> None:
    order = Order(3)
    order.request()
    with pytest.raises(Lost):
        order.page(page([], 3, 9, has_more=True))
