"""The archive's reservations in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

from millrace.lake.ports.lanes import Lane


@dataclass(slots=True)
class MemoryLanes:
    lanes: dict[int, Lane] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def load(self, number: int) -> Lane:
        with self.lock:
            return self.lanes.get(number, Lane())

    def store(self, number: int, lane: Lane) -> bool:
        with self.lock:
            if self.lanes.get(number, Lane()).version != lane.version - 1:
                return False
            self.lanes[number] = lane
            return True
