"""A target: a place events are delivered to, and which of them it wants (D6, D7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from millrace.delivery.domain.addresses import Reach, endpoint
from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.families import Family, texts
from millrace.ledger.domain.errors import BadRequest

BATCH_PATH = "/api/v1/events/batch/"
MOST_EVENTS = 1000
MOST_BYTES = 1024 * 1024


class Kind(StrEnum):
    TEAMSPACE = "teamspace"
    EXTERNAL = "external"
    STUB = "stub"


@dataclass(frozen=True, slots=True)
class Target:
    """What the dispatcher knows of a target. `prefixes`: the event types it wants; none: all."""

    id: str
    kind: str
    url: str = ""
    prefixes: frozenset[str] = frozenset()
    start_at: int = 0
    """Positions up to this one were there before the target asked for `start: now`."""

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


@dataclass(frozen=True, slots=True)
class Definition:
    """A target as an operator writes it. Secrets are in here, so it is never printed or stored with the journal."""

    id: str
    kind: Kind
    url: str = ""
    webhook: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """For signing; the first is the newest. Several while a secret is being replaced."""
    authorization: str = field(default="", repr=False)
    prefixes: frozenset[str] = frozenset()
    start_now: bool = False
    paused: bool = False

    def target(self, start_at: int = 0) -> Target:
        return Target(self.id, self.kind.value, self.url, self.prefixes, start_at)


FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "type": str,
    "url": str,
    "mode": str,
    "secrets": list,
    "authorization": str,
    "families": list,
    "start": str,
    "paused": bool,
}


def definition(target_id: str, given: Any, *, loopback: bool = False) -> Definition:
    """Read an operator's target. Raises `BadRequest`, naming the field. `loopback`: this machine may be reached."""
    where = f"targets.{target_id}"
    if not target_id or len(target_id) > 128 or not target_id.isprintable():
        raise BadRequest("A target's id is 1 to 128 printable characters.", field="targets")
    if not isinstance(given, Mapping):
        raise BadRequest(f"{where} is a table of settings.", field=where)
    for name, value in given.items():
        if name not in FIELDS:
            raise BadRequest(f"{where} has no setting {str(name)[:64]!r}.", field=f"{where}.{str(name)[:64]}")
        if not isinstance(value, FIELDS[name]):
            raise BadRequest(f"{where}.{name} has the wrong type.", field=f"{where}.{name}")
    kind = Kind(_one_of(where, "type", given.get("type"), [kind.value for kind in Kind]))
    webhook = _one_of(where, "mode", given.get("mode", "batch"), ["batch", "webhook"]) == "webhook"
    if webhook and kind is not Kind.EXTERNAL:
        raise BadRequest(f"{where}.mode: only an external target is a webhook.", field=f"{where}.mode")
    url = given.get("url", "")
    if url:
        endpoint(url, Reach(public=kind is not Kind.STUB, loopback=loopback))
    authorization = given.get("authorization", "")
    if not (authorization.isascii() and authorization.isprintable()):
        raise BadRequest(f"{where}.authorization cannot be a header.", field=f"{where}.authorization")
    secrets = tuple(given.get("secrets", ()))
    texts(secrets, f"{where}.secrets")
    return Definition(
        target_id,
        kind,
        url,
        webhook,
        secrets,
        authorization,
        texts(given.get("families", ()), f"{where}.families"),
        _one_of(where, "start", given.get("start", "retained"), ["retained", "now"]) == "now",
        given.get("paused", False),
    )


def _one_of(where: str, name: str, value: Any, allowed: list[str]) -> str:
    if value not in allowed:
        raise BadRequest(f"{where}.{name} is one of {', '.join(allowed)}.", field=f"{where}.{name}")
    return str(value)
