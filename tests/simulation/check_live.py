"""What a live client may rely on: nothing missed, nothing out of turn, snapshot and live never mixed."""

from __future__ import annotations

from collections.abc import Sequence

from millrace.ledger.domain.page import Event
from tests.simulation.history import broken
from tests.simulation.live import Socket


def check_socket(socket: Socket, events: Sequence[Event], prunable: int, *, once: bool) -> None:
    """`once`: nothing went wrong and one fan-out ran, so every event must have come exactly once."""
    if socket.covered is None:
        return
    wanted = [event for event in events if _concerns(socket, event)]
    live = [position for kind, position in socket.arrived if kind in ("broadcast", "live")]
    own = {event.position for event in events if event.origin.connection == socket.id}
    broken(own & set(live), "a connection was sent its own events:", socket.id, sorted(own & set(live)))
    _check_prefix(socket, wanted, live, prunable)
    _check_snapshot(socket, wanted, prunable)
    gaps = [position for kind, position in socket.arrived if kind == "gap"]
    broken(any(position > prunable for position in gaps), "told of a gap where nothing is gone:", gaps, socket.id)
    broken(
        once and socket.complete and not socket.open, "a connection was closed although nothing went wrong", socket.id
    )
    if socket.open and socket.complete:
        missing = {e.position for e in wanted if e.position > socket.covered} - set(live)
        lost = {position for position in missing if position > prunable}
        broken(lost, "a live client missed", sorted(lost), "after", socket.covered, "on", socket.id)
    above = [position for position in live if position > socket.covered]
    broken(once and len(above) != len(set(above)), "an event came twice although nothing went wrong:", above)


def _concerns(socket: Socket, event: Event) -> bool:
    mine = event.origin.connection == socket.id
    return not mine and (socket.partitions is None or not socket.partitions.isdisjoint(event.record.partitions))


def _check_prefix(socket: Socket, wanted: Sequence[Event], live: Sequence[int], prunable: int) -> None:
    """Whatever arrives live above the covered range has all its predecessors before it: a contiguous prefix."""
    assert socket.covered is not None
    seen: set[int] = set()
    for position in live:
        if position > socket.covered:
            before = {e.position for e in wanted if max(socket.covered, prunable) < e.position < position}
            broken(before - seen, "position", position, "came before", sorted(before - seen), "on", socket.id)
        seen.add(position)


def _check_snapshot(socket: Socket, wanted: Sequence[Event], prunable: int) -> None:
    kinds = [kind for kind, _ in socket.arrived]
    if "opened" not in kinds:
        return
    broken(kinds[0] != "opened", "something came before the watermark:", socket.arrived[:3])
    broken(socket.arrived[0][1] != socket.covered, "two watermarks")
    snapshot = [position for kind, position in socket.arrived if kind == "snapshot"]
    first_live = kinds.index("live") if "live" in kinds else len(kinds)
    broken("snapshot" in kinds[first_live:], "snapshot and live are mixed:", socket.arrived)
    broken(snapshot != sorted(set(snapshot)), "the snapshot is out of order or repeats:", snapshot)
    broken(any(position > (socket.covered or 0) for position in snapshot), "a snapshot event above the watermark")
    lived = [position for kind, position in socket.arrived if kind == "live"]
    broken(any(position <= (socket.covered or 0) for position in lived), "a live event below the watermark:", lived)
    if socket.complete or lived:
        due = {e.position for e in wanted if max(socket.begin, prunable) < e.position <= (socket.covered or 0)}
        broken(due - set(snapshot), "the snapshot lacks", sorted(due - set(snapshot)))
