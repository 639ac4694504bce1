"""Targets, positions, agenda and wake-ups in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.hub_targets import HubTarget, SecretsLost
from millrace.delivery.domain.targets import Blocked, Target, TargetState
from millrace.delivery.ports.targets import Everything, Kept, Position, Wake
from millrace.ledger.domain.names import join_key


@dataclass(slots=True)
class MemoryTargets:
    states: dict[str, TargetState] = field(default_factory=dict)

    def get(self, target_id: str) -> TargetState:
        return self.states.get(target_id, TargetState())

    def fare(self, target_id: str, circuit: Circuit, detail: str) -> None:
        before = self.get(target_id)
        self.states[target_id] = replace(before, circuit=circuit, blocked="", blocked_detail=detail, blocked_ms=0)

    def block(self, target_id: str, reason: Blocked, detail: str, now_ms: int) -> None:
        noted = replace(self.get(target_id), blocked=reason.value, blocked_detail=detail, blocked_ms=now_ms)
        self.states[target_id] = noted

    def pause(self, target_id: str, why: str) -> None:
        self.states[target_id] = replace(self.get(target_id), paused_why=why)

    def pace(self, target_id: str, *, quick: bool) -> None:
        self.states[target_id] = replace(self.get(target_id), quick=quick)

    def hand_over(self, target_id: str, next_send_ms: int) -> None:
        self.states[target_id] = replace(self.get(target_id), next_send_ms=next_send_ms)


@dataclass(slots=True)
class MemoryDirectory:
    states: MemoryTargets = field(default_factory=MemoryTargets)
    targets: dict[tuple[str, str], HubTarget] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    gone: set[tuple[str, str]] = field(default_factory=set)

    def get(self, tenant: str, target_id: str) -> Kept | None:
        target = self.targets.get((tenant, target_id))
        return None if target is None else Kept(target, self.states.get(target.key))

    def of(self, tenant: str) -> Sequence[Kept]:
        mine = sorted((target for target in self.targets.values() if target.tenant == tenant), key=lambda one: one.id)
        return [Kept(target, self.states.get(target.key)) for target in mine]

    def everything(self, tenant: str) -> Everything:
        return Everything(self.of(tenant))

    def tenants(self) -> Iterable[str]:
        return sorted(self.known)

    def former(self, tenant: str) -> Iterable[str]:
        return sorted(id_ for name, id_ in self.gone if name == tenant)

    def put(self, target: HubTarget, before: HubTarget | None) -> bool:
        if self.targets.get((target.tenant, target.id)) != before:
            return False
        self.known.add(target.tenant)
        self.targets[target.tenant, target.id] = target
        return True

    def remove(self, tenant: str, target_id: str) -> bool:
        self.states.states.pop(join_key(tenant, target_id), None)
        if (tenant, target_id) in self.targets:
            self.gone.add((tenant, target_id))
        return self.targets.pop((tenant, target_id), None) is not None


@dataclass(slots=True)
class MemoryPositions:
    positions: dict[tuple[str, str], Position] = field(default_factory=dict)
    open_from: dict[tuple[str, str], int] = field(default_factory=dict)

    def of(self, target: Target, ledgers: Sequence[str]) -> Mapping[str, Position]:
        return {ledger: position for ledger, position in self.all(target) if ledger in set(ledgers)}

    def all(self, target: Target, prefix: str = "") -> Iterable[tuple[str, Position]]:
        return [
            (ledger, position)
            for (key, ledger), position in sorted(self.positions.items())
            if key == target.id and ledger.startswith(prefix)
        ]

    def begin_at(self, target: Target, ledger: str, position: int) -> None:
        there = self.positions.get((target.id, ledger), Position(0))
        if position:
            self.positions[target.id, ledger] = Position(max(there.at, position), there.delivered)

    def lowest_open(self, target: Target, ledger: str) -> int | None:
        return self.open_from.get((target.id, ledger))


@dataclass(slots=True)
class MemoryAgenda:
    visits: set[tuple[str, int, str]] = field(default_factory=set)

    def note(self, target: Target, ledgers: Iterable[str]) -> None:
        self.visits |= {(target.id, 0, ledger) for ledger in ledgers}

    def due(self, target: Target, now_ms: int, limit: int) -> Sequence[str]:
        visits = sorted((when, ledger) for key, when, ledger in self.visits if key == target.id and when <= now_ms)
        return list(dict.fromkeys(ledger for _, ledger in visits[:limit]))


@dataclass(slots=True)
class MemoryWakes:
    sent: list[Wake] = field(default_factory=list)

    def send(self, wakes: Sequence[Wake]) -> None:
        self.sent.extend(wakes)


@dataclass(slots=True)
class MemorySecrets:
    """Keeps what it is given, and hands out numbers for it."""

    kept: list[tuple[str, str]] = field(default_factory=list)

    def seal(self, context: str, text: str) -> bytes:
        self.kept.append((context, text))
        return str(len(self.kept) - 1).encode()

    def open(self, context: str, sealed: bytes) -> str:
        bound, text = self.kept[int(sealed)]
        if bound != context:
            raise SecretsLost("The secrets of this target cannot be opened any more: put them again.")
        return text
