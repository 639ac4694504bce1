"""Sources of a hub's target: which ledgers it hears of, and what an event of them is called outside the hub (D6)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from millrace.delivery.domain.events import MOST_ID_BYTES
from millrace.lake.domain.wrapping import wrap
from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import Ledger, join_key, realtime_ledger, split_key
from millrace.ledger.domain.page import Event

JOURNAL = "delivery"
CONTRACTS = ("sync", "realtime", "streams", "catalog", JOURNAL)
MOST_SOURCES = 50
MOST_PATTERN_BYTES = 512


@dataclass(frozen=True, slots=True)
class Source:
    """A contract, and a pattern of scopes: exact, or a prefix ending in `*`. A stream's scope is `runtime/stream`."""

    contract: str
    scope: str

    def matches(self, contract: str, scope: str) -> bool:
        if contract != self.contract:
            return False
        return scope.startswith(self.scope[:-1]) if self.scope.endswith("*") else scope == self.scope


@dataclass(frozen=True, slots=True)
class Place:
    """A ledger's name, taken apart."""

    contract: str
    tenant: str
    scope: str


def place_of(ledger: str) -> Place:
    contract, *rest = split_key(ledger)
    return Place(contract, rest[0] if rest else "", "/".join(rest[1:]))


def heard(sources: Iterable[Source], ledger: str) -> bool:
    """Whether one of the sources matches the ledger; its tenant has been looked at already."""
    place = place_of(ledger)
    return any(source.matches(place.contract, place.scope) for source in sources)


def sources_of(given: Any) -> tuple[Source, ...]:
    """An operator's list. Raises `BadRequest`, naming the place."""
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_SOURCES:
        raise BadRequest(f"sources is a list of 1 to {MOST_SOURCES} objects.", field="sources")
    return tuple(_source(number, one) for number, one in enumerate(given))


def _source(number: int, given: Any) -> Source:
    field = f"sources[{number}]"
    if not isinstance(given, dict) or given.keys() != {"contract", "scope"}:
        raise BadRequest(f"{field} is an object with contract and scope.", field=field)
    if given["contract"] not in CONTRACTS:
        raise BadRequest(f"{field}.contract is one of {', '.join(CONTRACTS)}.", field=f"{field}.contract")
    scope = given["scope"]
    if not isinstance(scope, str) or not 1 <= len(scope.encode()) <= MOST_PATTERN_BYTES:
        rule = f"{field}.scope is a name or a prefix ending in *, of 1 to {MOST_PATTERN_BYTES} bytes."
        raise BadRequest(rule, field=f"{field}.scope")
    return Source(given["contract"], scope)


def several_journals(sources: Iterable[Source]) -> bool:
    """Whether these may bring the journals of more than one team: their ids may be equal."""
    scopes = {source.scope for source in sources if source.contract == JOURNAL}
    return len(scopes) > 1 or any(scope.endswith("*") for scope in scopes)


def outside(ledger: str, event: Event, *, scoped: bool = False) -> tuple[str, str, bytes]:
    """
    Id, type and body of an event as a target gets it. `ValueError` if it was pruned.

    The journal's events go out as they were stored, but for an `event_id` that could be taken for another event's. An
    event of another contract goes out in its catalog envelope, and since its own id is unique in its ledger only, its
    `event_id` names the ledger too.
    """
    body = event.record.body
    event_id = outside_id(ledger, event.record.id, scoped=scoped)
    if place_of(ledger).contract == JOURNAL and body is not None:
        stored = json.loads(body)
        if event_id != event.record.id:
            body = canonical({**stored, "event_id": event_id})
        return event_id, str(stored["event_type"]), body
    envelope = wrap(ledger, event.record, event.position, event.time_ms)
    sent: dict[str, Any] = {
        "event_id": event_id,
        "event_type": envelope.event_type,
        "event_version": envelope.event_version,
        "idempotency_key": envelope.idempotency_key,
        "occurred_at": envelope.occurred_at,
        "sequence_position": envelope.sequence_position,
        "source": envelope.source,
    }
    if envelope.trace_id is not None:
        sent["trace_id"] = envelope.trace_id
    return event_id, envelope.event_type, canonical(sent)[:-1] + b',"payload":' + envelope.payload + b"}"


def outside_id(ledger: str, id_: str, *, scoped: bool = False) -> str:
    """
    `contract:scope:id`, escaped so that two events never share one.

    Of the journal the id as it is: unless it looks like such a name, which would be another event's, or is `scoped`
    because the target may get several teams' journals.
    """
    contract, _, *scope = split_key(ledger)
    if contract == JOURNAL and not scoped and id_.partition(":")[0] not in CONTRACTS:
        return id_
    named = ":".join(_escaped(part) for part in (contract, *scope, id_))
    if len(named.encode()) <= MOST_ID_BYTES:
        return named
    short = hashlib.sha256(id_.encode()).hexdigest()
    return ":".join(_escaped(part) for part in (contract, *scope, "sha256", short))


def inside(tenant: str, event_id: str) -> tuple[Ledger, str] | None:
    """The ledger and the id in it that an `event_id` of `outside_id` names; None if it is no such name."""
    parts = [part.replace("%3A", ":").replace("%25", "%") for part in event_id.split(":")]
    if len(parts) < 3 or parts[0] not in CONTRACTS:
        return None
    return known_ledger(join_key(parts[0], tenant, *parts[1:-1])), parts[-1]


def known_ledger(name: str) -> Ledger:
    """A ledger with the scope in which its ids are unique, which its contract decides."""
    contract, tenant, *scope = split_key(name)
    if contract == "realtime" and len(scope) == 1:
        return realtime_ledger(tenant, scope[0])
    return Ledger(name, name)


def _escaped(part: str) -> str:
    return part.replace("%", "%25").replace(":", "%3A")
