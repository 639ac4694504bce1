"""A target: a place events are delivered to, and which of them it wants (D6, D7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from millrace.delivery.domain.addresses import endpoint
from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.families import Family, texts
from millrace.delivery.domain.given import Given
from millrace.delivery.domain.kinds import Kinds
from millrace.ledger.domain.errors import BadRequest

BATCH_PATH = "/api/v1/events/batch/"
MOST_EVENTS = 1000
MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """What the dispatcher knows of a target. `prefixes`: the event types it wants; none: all."""

    id: str
    kind: str
    url: str = ""
    prefixes: frozenset[str] = frozenset()
    start_at: int = 0
    """Positions up to this one were there before the target asked for `start: now`."""
    scoped: bool = False
    """Ids of the journal go out with their team, for there may be several (D6)."""

    def wants(self, event_type: str, family: Family) -> bool:
        if family in (Family.LOCAL_ONLY, Family.UNDECIDED):
            return False
        return not self.prefixes or any(event_type.startswith(prefix) for prefix in self.prefixes)


class Blocked(StrEnum):
    """Why a drain did not begin or go on (D2). The first six are of the contract."""

    SAAS_DISABLED = "saas_disabled"
    MISSING_AUTH = "missing_auth"
    MISSING_TEAM = "missing_team"
    PRIVATE_TEAMSPACE_GATE = "private_teamspace_gate"
    DAEMON_LOCK = "daemon_lock"
    NETWORK_UNAVAILABLE = "network_unavailable"
    ENDPOINT_MISSING = "endpoint_missing"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class TargetState:
    """How a target fares. `paused_why` is empty when it is not paused."""

    circuit: Circuit = field(default_factory=Circuit)
    paused_why: str = ""
    blocked: str = ""
    blocked_detail: str = ""
    blocked_ms: int = 0
    quick: bool = False
    """It answered every request of its last drain soon."""
    next_send_ms: int = 0
    """A target with a rate limit is sent nothing before."""


def drains_blocked(states: Iterable[tuple[str, TargetState]]) -> list[dict[str, Any]]:
    """The targets, by id, that nothing could be sent to, and why, as status shows it."""
    return [
        {"target": id_, "reason": state.blocked, "detail": state.blocked_detail, "since_ms": state.blocked_ms}
        for id_, state in states
        if state.blocked
    ]


@dataclass(frozen=True, slots=True)
class Definition:
    """A target as an operator writes it. Secrets are in here, so it is never printed or stored with the journal."""

    id: str
    kind: str
    url: str = ""
    webhook: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """For signing; the first is the newest. Several while a secret is being replaced."""
    authorization: str = field(default="", repr=False)
    prefixes: frozenset[str] = frozenset()
    start_now: bool = False
    paused: bool = False

    def target(self, start_at: int = 0) -> Target:
        return Target(self.id, self.kind, self.url, self.prefixes, start_at)


FIELDS: Mapping[str, type] = {
    "type": str,
    "url": str,
    "mode": str,
    "secrets": list,
    "authorization": str,
    "families": list,
    "start": str,
    "paused": bool,
}


def definition(target_id: str, given: Any, kinds: Kinds, *, loopback: bool = False) -> Definition:
    """Read an operator's target. Raises `BadRequest`, naming the field. `loopback`: this machine may be reached."""
    where = f"targets.{target_id}"
    if not target_id or len(target_id) > 128 or not target_id.isprintable():
        raise BadRequest("A target's id is 1 to 128 printable characters.", field="targets")
    if not isinstance(given, Mapping):
        raise BadRequest(f"{where} is a table of settings.", field=where)
    read = Given(given, where)
    read.check(FIELDS)
    kind, url = read.kind(kinds), given.get("url", "")
    webhook = read.webhook(kind)
    if url:
        endpoint(url, kind.reach_from_client(loopback=loopback))
    authorization = given.get("authorization", "")
    if not (authorization.isascii() and authorization.isprintable()):
        raise BadRequest(f"{where}.authorization cannot be a header.", field=f"{where}.authorization")
    secrets = tuple(given.get("secrets", ()))
    texts(secrets, f"{where}.secrets")
    return Definition(
        id=target_id,
        kind=kind.name,
        url=url,
        webhook=webhook,
        secrets=secrets,
        authorization=authorization,
        prefixes=read.families(),
        start_now=read.start_now(),
        paused=read.paused(),
    )
