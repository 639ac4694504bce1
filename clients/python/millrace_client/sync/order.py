"""Puts sync pages and broadcasts into one sequence: every event once, by committed_id. No socket, no clock."""

from __future__ import annotations

from dataclasses import dataclass

from millrace_client.sync.protocol import Json, Lost


@dataclass(frozen=True, slots=True)
class OrderedEvents:
    """The next events in order; once they are dealt with, everything up to `cursor` is."""

    events: list[Json]
    cursor: int


class Order:
    """
    What a connection hears, put in order.

    Broadcasts are kept until a page has gone past them, or until no cycle runs. If more are kept than there is room
    for, all are let go and another cycle becomes due: its watermark is taken later, so that it covers them. With
    `gapless`, for a whole project, a jump in the positions makes a cycle due too.
    """

    def __init__(self, since: int, *, gapless: bool = False, room: int = 1000) -> None:
        self.last = since
        self._gapless = gapless
        self._room = room
        self._kept: dict[int, Json] = {}
        self._running = False
        self._first = False
        self._due = True

    @property
    def syncing(self) -> bool:
        return self._running or self._due

    def request(self) -> int:
        """The position the next sync starts from; call it just before that goes out."""
        if not self._running:
            self._running, self._first, self._due = True, True, False
        return self.last

    def is_ahead(self, page: Json) -> bool:
        """Whether a cycle's first page shows that we know positions that the hub has not."""
        return self._first and int(page["sync_to_committed_id"]) < self.last

    def restart(self, since: int) -> None:
        self.last = since
        self._kept.clear()
        self._running, self._due = False, True

    def heard(self, event: Json) -> None:
        """Take a broadcast."""
        position = int(event["committed_id"])
        if position <= self.last or self._due:
            return
        if len(self._kept) >= self._room and position not in self._kept:
            self._kept.clear()
            self._due = True
            return
        self._kept[position] = event

    def page(self, page: Json) -> OrderedEvents:
        """Take a sync page. Raises `Lost` if it leads nowhere."""
        fresh = {int(event["committed_id"]): event for event in page["events"]}
        through = max(self.last, int(page["next_since_committed_id"]), *fresh)
        if page["has_more"] and through == self.last:
            raise Lost("The hub sent a page that leads nowhere.")
        self._running, self._first = bool(page["has_more"]), False
        known = {position: event for position, event in self._kept.items() if position <= through}
        return self._hand_out(known | fresh, through)

    def ready(self) -> OrderedEvents | None:
        """The broadcasts that are next in order, while no cycle runs."""
        if not self._kept:
            return None
        through = self._end_of_run() if self._gapless else max(self._kept)
        if through == self.last:
            self._due = True
            return None
        return self._hand_out({at: event for at, event in self._kept.items() if at <= through}, through)

    def _end_of_run(self) -> int:
        end = self.last
        while end + 1 in self._kept:
            end += 1
        return end

    def _hand_out(self, events: dict[int, Json], through: int) -> OrderedEvents:
        batch = OrderedEvents([events[position] for position in sorted(events) if position > self.last], through)
        self.last = through
        self._kept = {position: event for position, event in self._kept.items() if position > through}
        return batch
