"""The sync contract, outbound: what a sync request asks for, and what the answers look like (S6, S7, S8)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.access import CONSUMER, Identity
from millrace.ledger.domain.errors import BadRequest, Forbidden
from millrace.ledger.domain.kinds import kind_of
from millrace.ledger.domain.page import Event
from millrace.sync.domain import as_sent
from millrace.sync.domain.submit import MAX_PARTITIONS, normal_partition, partition_problem

LIMIT_MIN, LIMIT_DEFAULT, LIMIT_MAX = 50, 500, 1_000
HTTP_PAGE_BYTES = 4 * 1024 * 1024
MAX_POSITION = 2**53 - 1


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """`partitions` None: the whole project."""

    partitions: Sequence[str] | None
    since: int
    limit: int
    sync_to: int | None


@dataclass(frozen=True, slots=True)
class SyncPage:
    """`next_since` is where the next page starts; on the last one it is `sync_to`."""

    events: Sequence[Event]
    next_since: int
    sync_to: int
    has_more: bool
    pruned_through: int | None = None


def check_sync(body: Any, identity: Identity, project: str) -> SyncRequest:
    """S6, S7: raises `BadRequest` naming the field, or `Forbidden` for the whole request."""
    identity.require(CONSUMER)
    identity.require_project(project)
    if not isinstance(body, dict):
        raise BadRequest("The body must be an object.", field="body", value_class=kind_of(body))
    since = _position(body, "since_committed_id")
    if since is None:
        raise BadRequest("since_committed_id is missing; 0 reads from the start.", field="since_committed_id")
    partitions = _partitions(body.get("partitions"))
    if partitions is None:
        if not identity.sees_everything:
            raise Forbidden("Without partitions the whole project is meant, which needs a token for partition *.")
    elif not all(identity.reaches(name) for name in partitions):
        raise Forbidden("The token does not reach every partition asked for.", field="partitions")
    return SyncRequest(partitions, since, _limit(body.get("limit")), _position(body, "sync_to_committed_id"))


def _position(body: dict[str, Any], field: str) -> int | None:
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_POSITION:
        rule = f"{field} must be an integer from 0 to {MAX_POSITION}."
        value_class = "a number out of range" if type(value) is int else kind_of(value)
        raise BadRequest(rule, field=field, value_class=value_class)
    return value


def _partitions(value: Any) -> list[str] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_PARTITIONS:
        rule = f"partitions must be a list of 1 to {MAX_PARTITIONS} names; leave it out for the whole project."
        raise BadRequest(rule, field="partitions", value_class=kind_of(value))
    for index, name in enumerate(value):
        if problem := partition_problem(name):
            raise BadRequest(f"partitions[{index}] {problem}.", field=f"partitions[{index}]", value_class=kind_of(name))
    return sorted({normal_partition(name) for name in value})


def _limit(value: Any) -> int:
    """S6: a number out of bounds is coerced to the nearest bound."""
    if value is None:
        return LIMIT_DEFAULT
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadRequest("limit must be an integer.", field="limit", value_class=kind_of(value))
    return min(max(value, LIMIT_MIN), LIMIT_MAX)


def event_json(event: Event) -> str:
    """A committed event on the wire. The stored body is already JSON: it goes out as it is."""
    return _event_json(event, as_sent.split(event.record.body or b"{}")[1])


def as_it_came(event: Event) -> dict[str, Any]:
    """A committed event for clients of the flat shapes, with how it came under `as`."""
    came, body = as_sent.split(event.record.body or b"{}")
    content: dict[str, Any] = json.loads(_event_json(event, body))
    return content | {"as": came}


def _event_json(event: Event, body: str) -> str:
    record = event.record
    return (
        f'{{"committed_id":{event.position},"id":{_text(record.id)},"client_id":{_text(event.origin.client_id)},'
        f'"partitions":{_text(record.partitions)},{body[1:-1]},"status_updated_at":{event.time_ms}}}'
    )


def page_json(partitions: Sequence[str] | None, page: SyncPage) -> str:
    """The answer to a sync. `partitions` null: the whole project."""
    pruned = "" if page.pruned_through is None else f',"pruned_through_committed_id":{page.pruned_through}'
    return (
        f'{{"partitions":{_text(partitions)},"events":[{",".join(map(event_json, page.events))}],'
        f'"next_since_committed_id":{page.next_since},"sync_to_committed_id":{page.sync_to},'
        f'"has_more":{_text(page.has_more)}{pruned}}}'
    )


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
