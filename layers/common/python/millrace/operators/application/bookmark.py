"""A bookmark: how far each part of a rebuild has come, saved as it goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from millrace.operators.domain.rebuilt import Rebuilt
from millrace.operators.ports import Key, RunPlace

END = "end"
SAVE_EVERY = 16
"""Steps inside of one ledger."""


@dataclass(slots=True)
class Bookmark:
    """May be moved by many threads."""

    place: RunPlace
    report: Rebuilt
    segments: dict[str, Any] = field(default_factory=dict)
    """`phase/segment` → where its scan goes on, or the end."""
    ledgers: dict[str, int] = field(default_factory=dict)
    """Of ledgers that are being worked on: up to which position their index is written."""
    object: str = ""
    """The last archive object that was read."""
    lock: Lock = field(default_factory=Lock)
    steps: int = 0

    @classmethod
    def open(cls, place: RunPlace) -> Bookmark:
        stored = place.load()
        if stored is None:
            return cls(place, Rebuilt())
        return cls(place, Rebuilt.of(stored["report"]), stored["segments"], stored["ledgers"], stored["object"])

    @property
    def resumed(self) -> bool:
        return bool(self.segments or self.object)

    def after(self, phase: str, segment: int) -> Key | str | None:
        with self.lock:
            found: Key | str | None = self.segments.get(f"{phase}/{segment}")
            return found

    def move(self, phase: str, segment: int, after: Key | None) -> None:
        with self.lock:
            self.segments[f"{phase}/{segment}"] = END if after is None else after
            self._save()

    def pass_object(self, name: str) -> None:
        with self.lock:
            self.object = name
            self._save()

    def indexed(self, ledger: str, position: int) -> None:
        with self.lock:
            self.ledgers[ledger] = position
            self.steps += 1
            if self.steps % SAVE_EVERY == 0:
                self._save()

    def leave(self, ledger: str) -> None:
        with self.lock:
            self.ledgers.pop(ledger, None)

    def _save(self) -> None:
        content = {
            "segments": self.segments,
            "ledgers": self.ledgers,
            "object": self.object,
            "report": self.report.as_json(),
        }
        self.place.save(content)
