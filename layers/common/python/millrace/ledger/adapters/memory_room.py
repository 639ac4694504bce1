"""The waiting room and the notice board in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.waiting import Notice, Waiting


@dataclass(slots=True)
class MemoryRoom:
    rows: dict[str, dict[bytes, Waiting]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def leave(self, ledger: Ledger, request: Waiting) -> None:
        with self.lock:
            self.rows.setdefault(ledger.name, {})[request.nonce] = request

    def look(self, ledger: Ledger) -> Sequence[Waiting]:
        with self.lock:
            return list(self.rows.get(ledger.name, {}).values())

    def clear(self, ledger: Ledger, nonces: Sequence[bytes]) -> None:
        with self.lock:
            for nonce in nonces:
                self.rows.get(ledger.name, {}).pop(nonce, None)


@dataclass(slots=True)
class MemoryBoard:
    notices: dict[str, Notice] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def read(self, ledger: Ledger) -> Notice:
        with self.lock:
            return self.notices.get(ledger.name, Notice())

    def take(self, ledger: Ledger, leader: bytes, now_ms: int, until_ms: int) -> bool:
        with self.lock:
            notice = self.notices.get(ledger.name, Notice())
            if not notice.is_free(now_ms):
                return False
            self.notices[ledger.name] = replace(notice, leader=leader, until_ms=until_ms)
            return True

    def post(self, ledger: Ledger, leader: bytes, notice: Notice) -> bool:
        with self.lock:
            if self.notices.get(ledger.name, Notice()).leader != leader:
                return False
            self.notices[ledger.name] = notice
            return True
