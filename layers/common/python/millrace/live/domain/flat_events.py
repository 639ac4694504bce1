"""Flat events: items of the two camelCase shapes, as they are stored, and committed events as those clients read them.

A flat item is stored as

    {"event": {type, payload, schemaVersion?, userId?, meta?}, "meta": meta as sent}

The stored `meta` is what readers of every dialect get. `event.meta` is the same object without `clientId`, left out
when nothing remains: S5 compares `event` and the partitions only, and of a flat item all but `meta.clientId` and
`projectId` has to be compared. `meta.clientId` and `projectId` become the item's `client_id` and `project`, which
must be the connection's own; a reader gets them back from the committed event and its connection.

A client compares what it reads with what it sent. So what an item came without is noted beside it (`AsSent`), and left
out for readers of its own shape. Readers of another shape get what their shape demands, as they do of any event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.sync.domain.as_sent import AsSent
from millrace.sync.domain.submit import normal_partition

SNAKE, CAMEL, PROJECT = "snake", "camel", "project"


def read_item(dialect: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """A flat item in the core's form."""
    canonical = {key: item[key] for key in ("id", "partitions", "meta") if key in item}
    if dialect == PROJECT and ("partition" in item or "partitions" not in item):
        canonical["partitions"] = [item.get("partition")]
    event = {key: item[key] for key in ("type", "payload") if key in item}
    event |= {key: item[key] for key in ("schemaVersion", "userId") if item.get(key) is not None}
    meta = item.get("meta")
    if isinstance(meta, dict):
        if compared := {key: value for key, value in meta.items() if key != "clientId"}:
            event["meta"] = compared
        if "clientId" in meta:
            canonical["client_id"] = meta["clientId"]
    if "projectId" in item:
        canonical["project"] = item["projectId"]
    return canonical | {"event": event, "as": _as_sent(dialect, item, canonical.get("partitions"))}


def _as_sent(dialect: str, item: Mapping[str, Any], partitions: Any) -> AsSent:
    meta = item.get("meta")
    without = [name for name in ("projectId", "meta") if item.get(name) is None]
    if dialect == PROJECT and item.get("schemaVersion") is None:
        without.append("schemaVersion")
    if isinstance(meta, dict):
        without += ["meta.clientId"] if meta.get("clientId") is None else []
        without += ["meta.clientTs"] if "clientTs" not in meta else []
    names = [name for name in partitions if isinstance(name, str)] if isinstance(partitions, list) else []
    spelled = names if any(normal_partition(name) != name for name in names) else []
    tells = dialect == CAMEL and item.get("schemaVersion") is not None
    return AsSent(dialect, tuple(without), tuple(spelled), tells)


def write_event(dialect: str, committed: Mapping[str, Any], project: str = "") -> dict[str, Any]:
    """One committed event. An event that came in by another way is filled up with what this dialect demands; of one
    that came in this dialect whatever it came without is left out."""
    if dialect == SNAKE:
        return {key: value for key, value in committed.items() if key != "as"}
    came: Mapping[str, Any] = committed.get("as") or {}
    came = came if came.get("shape") == dialect else {}
    written = _WRITTEN[dialect](committed, came, project)
    without = came.get("without", ())
    if "meta" in written:
        written["meta"] = {key: value for key, value in written["meta"].items() if f"meta.{key}" not in without}
    return {key: value for key, value in written.items() if key not in without}


def _camel_event(committed: Mapping[str, Any], came: Mapping[str, Any], project: str) -> dict[str, Any]:
    """`schemaVersion` is no field of this shape: whoever sent one gets it back."""
    version = committed["event"].get("schemaVersion") if came else None
    return {
        "id": committed.get("id"),
        "partitions": came.get("partitions") or committed.get("partitions"),
        **({"projectId": project} if project else {}),
        **_content(committed),
        **({} if version is None else {"schemaVersion": version}),
        "committedId": committed.get("committed_id"),
        "created": committed.get("status_updated_at"),
    }


def _project_event(committed: Mapping[str, Any], came: Mapping[str, Any], project: str) -> dict[str, Any]:
    version = (committed.get("event") or {}).get("schemaVersion")
    return {
        "id": committed.get("id"),
        "projectId": project,
        "partition": next(iter(came.get("partitions") or committed.get("partitions") or ()), None),
        "committedId": committed.get("committed_id"),
        "schemaVersion": version if type(version) is int and version > 0 else 1,
        **_content(committed),
        "serverTs": committed.get("status_updated_at"),
    }


_WRITTEN = {CAMEL: _camel_event, PROJECT: _project_event}


def _content(committed: Mapping[str, Any]) -> dict[str, Any]:
    """What the client said. Only its own name may stand in its `meta`, and a user is named by a string."""
    event: Mapping[str, Any] = committed.get("event") or {}
    user = {"userId": event["userId"]} if isinstance(event.get("userId"), str) else {}
    meta = {"clientTs": committed.get("status_updated_at"), **(committed.get("meta") or {})}
    return {
        **user,
        "type": event.get("type"),
        "payload": event.get("payload"),
        "meta": {**meta, "clientId": committed.get("client_id")},
    }
