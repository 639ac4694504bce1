"""Leases of drains in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from millrace.delivery.domain.drains import EXPECTED_MS, DrainLease, WaitingTarget
from millrace.delivery.ports.drains import Expected, LeaseTaken


@dataclass(slots=True)
class MemoryDrains:
    held: dict[tuple[str, str], DrainLease] = field(default_factory=dict)
    asked: set[tuple[str, str]] = field(default_factory=set)
    expected: dict[tuple[str, str], int] = field(default_factory=dict)

    def expect(self, tenant: str, target_id: str, now_ms: int) -> Expected:
        key = (tenant, target_id)
        held = self.held.get(key)
        if held is not None and held.lives(now_ms):
            return Expected(mine=False, drain=held)
        if now_ms - EXPECTED_MS < self.expected.get(key, -EXPECTED_MS) <= now_ms + EXPECTED_MS:
            return Expected(mine=False)
        self.expected[key] = now_ms
        return Expected(mine=True)

    def take(self, drain: DrainLease, now_ms: int) -> LeaseTaken:
        other = self.held.get(_key(drain))
        if other is not None and other.lives(now_ms):
            return LeaseTaken(False, other)
        self.held[_key(drain)] = drain
        self.asked.discard(_key(drain))
        self.expected.pop(_key(drain), None)
        return LeaseTaken(True, other)

    def renew(self, drain: DrainLease) -> bool:
        if not self._has(drain):
            return False
        self.held[_key(drain)] = drain
        return True

    def ask(self, drain: DrainLease) -> bool:
        if not self._has(drain):
            return False
        self.asked.add(_key(drain))
        return True

    def end(self, drain: DrainLease) -> bool:
        if not self._has(drain):
            return False
        del self.held[_key(drain)]
        self.expected.pop(_key(drain), None)
        asked = _key(drain) in self.asked
        self.asked.discard(_key(drain))
        return asked

    def of(self, tenant: str) -> Sequence[DrainLease]:
        return [drain for (name, _), drain in sorted(self.held.items()) if name == tenant]

    def _has(self, drain: DrainLease) -> bool:
        held = self.held.get(_key(drain))
        return held is not None and held.holder == drain.holder


@dataclass(slots=True)
class MemoryLine:
    line: dict[tuple[str, str], WaitingTarget] = field(default_factory=dict)

    def wait(self, waiting: WaitingTarget) -> None:
        key = (waiting.tenant, waiting.target_id)
        since_ms = self.line.get(key, waiting).since_ms
        self.line[key] = replace(waiting, since_ms=since_ms, seen_ms=waiting.since_ms)

    def leave(self, tenant: str, target_id: str) -> None:
        self.line.pop((tenant, target_id), None)

    def waiting(self, tenant: str) -> Sequence[WaitingTarget]:
        return [one for (name, _), one in sorted(self.line.items()) if name == tenant]


def _key(drain: DrainLease) -> tuple[str, str]:
    return drain.tenant, drain.target_id
