"""Every door that takes a batch over HTTP: what an event looks like there, and what the answer says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.chaos.tenants import DOMAIN, PROJECT, RUNTIME, SESSION, STREAM, TEAM
from tests.e2e import streams_api
from tests.e2e.api import item
from tests.e2e.lake import EVENT, session_event

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Door:
    name: str
    path: str
    contract: str
    scope: tuple[str, ...]
    event: Callable[[str, str], Json]
    """Of an id and the tenant's name, which the event carries inside."""
    committed: Callable[[Json], tuple[str, int | None] | None]
    """Id and position in one result, or None if it is a refusal."""


def submitted(result: Mapping[str, Any]) -> tuple[str, int | None] | None:
    return (result["id"], result["committed_id"]) if result["status"] == "committed" else None


def sync_item(id_: str, tenant: str) -> Json:
    return item(id_, {"tenant": tenant})


def _published(result: Json) -> tuple[str, int | None] | None:
    return (result["event"]["eventId"], result["event"]["sequence"]) if result["ok"] else None


def _session_event(id_: str, tenant: str) -> Json:
    event = session_event(id_, SESSION)
    return {**event, "payload": {**event["payload"], "text": tenant}}


def _emitted(result: Json) -> tuple[str, int | None] | None:
    return (result["event_id"], result["seq_no"]) if "seq_no" in result else None


def _stream_event(id_: str, tenant: str) -> Json:
    return streams_api.event(id_, payload={"load": 1, "note": tenant})


def _recorded(result: Json) -> tuple[str, int | None] | None:
    if result["status"] != "committed":
        return None
    return result["idempotency_key"], result["sequence_position"]


def _catalog_event(id_: str, tenant: str) -> Json:
    return {**EVENT, "idempotency_key": id_, "payload": {"table": tenant}}


def _kept(result: Json) -> tuple[str, int | None] | None:
    """A journal tells no positions."""
    return (result["event_id"], None) if result["status"] in ("success", "duplicate") else None


def _journal_event(id_: str, tenant: str) -> Json:
    return {"event_id": id_, "event_type": "note.added", "tenant": tenant}


SUBMIT = Door("submit", f"/v1/projects/{PROJECT}/submit_events", "sync", (PROJECT,), sync_item, submitted)
DOORS = (
    SUBMIT,
    Door("publish", "/v1/realtime/events", "realtime", (SESSION,), _session_event, _published),
    Door(
        "emit",
        f"/v1/runtimes/{RUNTIME}/streams/{STREAM}/events",
        "streams",
        (RUNTIME, STREAM),
        _stream_event,
        _emitted,
    ),
    Door("record", f"/v1/catalog/{DOMAIN}/events", "catalog", (DOMAIN,), _catalog_event, _recorded),
    Door("ingest", "/api/v1/events/batch/", "delivery", (TEAM,), _journal_event, _kept),
)
