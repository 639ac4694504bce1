"""Manage targets: what an operator puts, sees, deletes and drains (D6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.hub_targets import (
    HubTarget,
    SecretSet,
    SecretsLost,
    check_lost,
    check_moved,
    check_patch,
    check_secrets,
    check_target,
    check_target_id,
)
from millrace.delivery.domain.kinds import Kinds
from millrace.delivery.domain.source_access import EVERYTHING, may_read, require_sources
from millrace.delivery.domain.sources import place_of
from millrace.delivery.ports.deliveries import TargetStates
from millrace.delivery.ports.targets import Directory, Kept, Positions, Secrets, Wake, Wakes
from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.domain.access import OPERATOR, Identity
from millrace.ledger.domain.errors import Conflict, NotFound, Throttled, UnreadableRow
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Log, State, Together

SIDE_BY_SIDE = 64


class TooManyTargets(Throttled):
    """One has to be deleted before another is made."""

    retry_after_ms = 60_000


@dataclass(frozen=True, slots=True)
class ManageTargets:
    directory: Directory
    states: TargetStates
    secrets: Secrets
    positions: Positions
    wakes: Wakes
    log: Log
    state: State
    heads: Heads
    together: Together
    clock: Callable[[], int]
    kinds: Kinds
    loopback: bool
    """Whether targets on this machine are allowed: never on AWS."""
    most_targets: int = 100
    """That one tenant may have."""

    def put(self, identity: Identity, target_id: str, body: Any) -> dict[str, Any]:
        """Make or change a target. A target that goes on after a pause begins with a clean slate."""
        identity.require(OPERATOR)
        check_target_id(target_id)
        kept = self.directory.get(identity.tenant, target_id)
        if kept is not None:
            require_sources(identity, kept.target.sources)
        return self._change(identity, target_id, body, kept.target if kept else None, goes_on=True)

    def patch(self, identity: Identity, target_id: str, body: Any) -> dict[str, Any]:
        """Change the fields that are given. One that the hub paused goes on only if `paused` says so."""
        identity.require(OPERATOR)
        before = self.find(identity, target_id).target
        changed = check_patch(body)
        return self._change(identity, target_id, before.settings() | changed, before, goes_on="paused" in changed)

    def _change(
        self, identity: Identity, target_id: str, body: Any, before: HubTarget | None, *, goes_on: bool
    ) -> dict[str, Any]:
        now_ms = self.clock()
        target = check_target(
            identity.tenant, target_id, body, before, now_ms, kinds=self.kinds, loopback=self.loopback
        )
        require_sources(identity, target.sources)
        if before is None and self._count(identity.tenant) >= self.most_targets:
            raise TooManyTargets("The tenant has all the targets it may have.", most_targets=self.most_targets)
        kind, kept_secrets = self.kinds[target.kind], self._secrets(before)
        if kept_secrets is None:
            check_lost(kind, body)
        elif before is not None and before.url != target.url:
            check_moved(body, kept_secrets)
            kept_secrets = None
        secrets = (kept_secrets or SecretSet()).changed(body, now_ms)
        check_secrets(kind, body, secrets)
        target = replace(target, sealed=self.secrets.seal(target.key, secrets.text()))
        if target.start_now and (before is None or before.sources != target.sources):
            self._start_now(target, before)
        if not self.directory.put(target, before):
            raise Conflict("The target was changed at the same time; look at it and put it again.", field="target_id")
        if goes_on and not target.paused:
            self.states.fare(target.key, Circuit(), "")
            self.states.pause(target.key, "")
        if not target.paused:
            self.wakes.send([Wake(identity.tenant, target_id, scan=True)])
        return target.as_json(self.states.get(target.key), secrets, kind, now_ms)

    def _count(self, tenant: str) -> int:
        everything = self.directory.everything(tenant)
        return len(everything.kept) + len(everything.unreadable)

    def unreadable(self, identity: Identity) -> Sequence[str]:
        """Ids of targets of which nothing else can be told, for those who see every partition."""
        return self.directory.everything(identity.tenant).unreadable if identity.sees_everything else ()

    def get(self, identity: Identity, target_id: str) -> dict[str, Any]:
        identity.require(OPERATOR)
        return self._told(self.find(identity, target_id))

    def list(self, identity: Identity) -> dict[str, Any]:
        identity.require(OPERATOR)
        return {"targets": [self._told(kept) for kept in self.known_to(identity)]}

    def known_to(self, identity: Identity) -> Sequence[Kept]:
        """The tenant's targets whose sources the bearer may read."""
        return [
            kept
            for kept in self.directory.of(identity.tenant)
            if all(may_read(identity, source) for source in kept.target.sources)
        ]

    def delete(self, identity: Identity, target_id: str) -> dict[str, Any]:
        """It holds back retention no more. What it was given stays known: made again, it goes on where it was."""
        identity.require(OPERATOR)
        check_target_id(target_id)
        try:
            kept = self.directory.get(identity.tenant, target_id)
        except UnreadableRow:
            require_sources(identity, EVERYTHING)  # nobody knows what it hears of
            kept = None
        if kept is not None:
            require_sources(identity, kept.target.sources)
        return {"deleted": self.directory.remove(identity.tenant, target_id)}

    def drain(self, identity: Identity, target_id: str) -> dict[str, Any]:
        """Ask for a drain that looks for itself where the target is behind."""
        identity.require(OPERATOR)
        kept = self.find(identity, target_id)
        if kept.target.paused or kept.state.paused_why:
            raise Conflict("The target is paused; patch it with paused false first.", field="paused")
        self.wakes.send([Wake(identity.tenant, target_id, scan=True)])
        return {"asked": True}

    def find(self, identity: Identity, target_id: str) -> Kept:
        check_target_id(target_id)
        kept = self.directory.get(identity.tenant, target_id)
        if kept is None:
            raise NotFound("There is no such target.", field="target_id")
        require_sources(identity, kept.target.sources)
        return kept

    def _told(self, kept: Kept) -> dict[str, Any]:
        secrets, kind = self._secrets(kept.target), self.kinds[kept.target.kind]
        return kept.target.as_json(kept.state, secrets, kind, self.clock())

    def _secrets(self, target: HubTarget | None) -> SecretSet | None:
        """None if they are lost: the operator has to give them again."""
        try:
            return SecretSet.of(self.secrets.open(target.key, target.sealed)) if target else SecretSet()
        except SecretsLost:
            return None

    def _start_now(self, target: HubTarget, before: HubTarget | None) -> None:
        """In every ledger that is new to it the target begins at the head. A ledger that is born later is all new."""
        known = target.target()
        for group in _groups(self._new_ledgers(target, before)):
            heads = self.together([partial(self._head, ledger) for ledger in group])
            self.together(
                [
                    partial(self.positions.begin_at, known, ledger.name, head)
                    for ledger, head in zip(group, heads, strict=True)
                ]
            )

    def _new_ledgers(self, target: HubTarget, before: HubTarget | None) -> Iterator[Ledger]:
        for ledger in self.state.ledgers():
            mine = place_of(ledger.name).tenant == target.tenant and target.hears(ledger.name)
            if mine and (before is None or not before.hears(ledger.name)):
                yield ledger

    def _head(self, ledger: Ledger) -> int:
        return newest(self.log, self.heads, ledger, self.state.marks(ledger).hint)


def _groups(ledgers: Iterator[Ledger]) -> Iterator[list[Ledger]]:
    while group := list(islice(ledgers, SIDE_BY_SIDE)):
        yield group
