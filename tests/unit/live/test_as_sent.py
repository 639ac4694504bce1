"""S16: what a client of a flat shape sent comes back to it, and nothing else: in results, pages and broadcasts."""

from __future__ import annotations

import json
import unicodedata
from itertools import combinations
from typing import Any

import pytest

from millrace.lake.domain.wrapping import wrap
from millrace.live.domain.flat_events import write_event
from millrace.sync.domain.as_sent import AsSent, split
from millrace.sync.domain.submit import check_item
from tests.unit.live.dialect_items import ME, SNAKE_ITEM
from tests.unit.live.test_converse import SYNC_LEDGER, Hub

CONNECTS: dict[str, dict[str, Any]] = {"camel": {}, "project": {"projectId": "demo"}}
TIMES = {"camel": "created", "project": "serverTs"}
NFD = unicodedata.normalize("NFD", "a\N{LATIN SMALL LETTER E WITH ACUTE}")
FULL: dict[str, dict[str, Any]] = {
    "camel": {
        "id": "e1",
        "partitions": ["a", "b"],
        "projectId": "demo",
        "userId": "U1",
        "type": "t",
        "payload": {"a_b": 1, "meta": {"clientId": "kept"}, "as": {"shape": "x"}},
        "meta": {"clientId": "me", "clientTs": 1738451200000.25, "trace": {"clientId": "kept"}},
    },
    "project": {
        "id": "e1",
        "partition": "a",
        "projectId": "demo",
        "userId": "U1",
        "type": "t",
        "schemaVersion": 3,
        "payload": {"a_b": 1, "meta": {"clientId": "kept"}, "as": {"shape": "x"}},
        "meta": {"clientId": "me", "clientTs": 1738451200000.25, "trace": {"clientId": "kept"}},
    },
}
OPTIONAL = {
    "camel": ("projectId", "userId", "meta", "meta.clientId", "meta.clientTs", "meta.trace"),
    "project": ("projectId", "userId", "meta", "meta.clientId", "meta.clientTs", "meta.trace", "schemaVersion"),
}
CASES = [
    (shape, left_out)
    for shape, optional in OPTIONAL.items()
    for count in range(len(optional) + 1)
    for left_out in combinations(optional, count)
    if "meta" not in left_out or not any(name.startswith("meta.") for name in left_out)
]
METAS: list[Any] = [{}, {"clientTs": None}, {"clientTs": "7"}, {"as": {}}]
PAYLOADS: list[Any] = [None, 0, "", [], {}, {"x": None, "1": 2**70}]
ODD: list[tuple[str, dict[str, Any]]] = [
    *((shape, {name: None}) for shape in FULL for name in ("projectId", "userId", "meta")),
    *((shape, {"userId": ""}) for shape in FULL),
    *((shape, {"meta": meta}) for shape in FULL for meta in METAS),
    *((shape, {"payload": payload}) for shape in FULL for payload in PAYLOADS),
    ("project", {"schemaVersion": None}),
    ("camel", {"schemaVersion": 3}),
    ("camel", {"schemaVersion": 3, "projectId": None}),
    ("camel", {"partitions": ["b", "a"]}),
    ("camel", {"partitions": ["b", NFD]}),
    ("project", {"partition": NFD}),
]


def without(item: dict[str, Any], left_out: tuple[str, ...]) -> dict[str, Any]:
    kept = {name: value for name, value in item.items() if name not in left_out}
    if "meta" in kept:
        kept["meta"] = {name: value for name, value in kept["meta"].items() if f"meta.{name}" not in left_out}
    return kept


def comes_back(shape: str, item: dict[str, Any]) -> dict[str, Any]:
    """The result, and the event as the sender pages it and as another client of its shape hears it: the same."""
    hub = Hub()
    everything = {"partitions": item["partitions"]} if shape == "camel" else {"projectId": "demo"}
    for connection in ("sends", "hears"):
        hub.connections.open(connection, hub.now)
        say(hub, connection, "connect", {"token": "me:*", "clientId": "me", **CONNECTS[shape]})
        connected = hub.heard(connection)["payload"]
        assert {name: connected[name] for name in connected if name.startswith("project")} == (
            {"projectId": "demo", "projectLastCommittedId": 0} if shape == "project" else {}
        )
        say(hub, connection, "sync", {**everything, "sinceCommittedId": 0})
        assert hub.heard(connection)["payload"]["events"] == []
    say(hub, "sends", "submit_events", {"events": [item]})
    (result,) = hub.heard("sends")["payload"]["results"]
    assert result == {"id": "e1", "status": "committed", "committedId": 1, TIMES[shape]: hub.now}
    hub.now += 5_000
    hub.fan_out(SYNC_LEDGER)
    heard = hub.heard("hears")
    assert set(heard) == {"type", "protocolVersion", "payload"}
    say(hub, "sends", "sync", {**everything, "sinceCommittedId": 0})
    (event,) = hub.heard("sends")["payload"]["events"]
    assert heard["payload"] == event
    assert (event.pop("committedId"), event.pop(TIMES[shape])) == (1, result[TIMES[shape]])
    return dict(event)


def say(hub: Hub, connection: str, kind: str, payload: Any) -> None:
    message = {"type": kind, "protocolVersion": "1.0", "payload": payload}
    hub.converse()(connection, json.dumps(message, ensure_ascii=False))


def ordered(item: dict[str, Any]) -> dict[str, Any]:
    """Partitions are a set (S3)."""
    return {**item, "partitions": sorted(item["partitions"])} if "partitions" in item else item


@pytest.mark.parametrize(
    ("shape", "left_out"), CASES, ids=lambda case: case if isinstance(case, str) else "-".join(case)
)
def test_s16_what_an_item_came_without_is_not_in_what_comes_back(shape: str, left_out: tuple[str, ...]) -> None:
    item = without(FULL[shape], left_out)
    assert ordered(comes_back(shape, item)) == item


@pytest.mark.parametrize(("shape", "change"), ODD)
def test_s16_odd_values_come_back_as_they_were_sent_and_null_as_nothing(shape: str, change: dict[str, Any]) -> None:
    item = {**FULL[shape], **change}
    optional = ("projectId", "userId", "meta", "schemaVersion")
    expected = {name: value for name, value in item.items() if value is not None or name not in optional}
    assert ordered(comes_back(shape, item)) == ordered(expected)


def test_s16_a_result_says_what_a_client_of_its_shape_reads() -> None:
    """Rejected and not processed items, whose results name no field that was not sent either."""
    hub = Hub()
    hub.connections.open("c1", hub.now)
    say(hub, "c1", "connect", {"token": "me:*", "clientId": "me", "projectId": "demo"})
    hub.heard("c1")
    bad = {"id": "bad", "partition": "a", "payload": {}}
    say(hub, "c1", "submit_events", {"events": [bad, {**FULL["project"], "id": "after"}]})
    errors = [{"field": "type", "message": "must be a non-empty string"}]
    assert hub.heard("c1")["payload"]["results"] == [
        {"id": "bad", "status": "rejected", "reason": "validation_failed", "errors": errors, "created": hub.now},
        {
            "id": "after",
            "status": "not_processed",
            "reason": "prior_item_failed",
            "blockedById": "bad",
            "created": hub.now,
        },
    ]


def stored(shape: str, left_out: tuple[str, ...]) -> dict[str, Any]:
    hub = Hub()
    hub.connections.open("c1", hub.now)
    say(hub, "c1", "connect", {"token": "me:*", "clientId": "me", **CONNECTS[shape]})
    say(hub, "c1", "submit_events", {"events": [without(FULL[shape], left_out)]})
    (page,) = hub.log.pages[SYNC_LEDGER.name].values()
    content: dict[str, Any] = json.loads(page.records[0].body or b"")
    return content


def test_s16_only_an_item_that_lacks_something_is_stored_with_a_note() -> None:
    assert "as" not in stored("camel", ("userId", "meta.trace"))
    assert "as" not in stored("project", ())
    assert stored("camel", ("projectId",))["as"] == {"shape": "camel", "without": ["projectId"]}


def test_s16_the_note_is_nobody_elses_business() -> None:
    """Readers in snake_case, over HTTP, of the archive and of targets get the event without it."""
    hub = Hub()
    hub.open("snake")
    hub.connections.open("c1", hub.now)
    say(hub, "c1", "connect", {"token": "me:*", "clientId": "me"})
    hub.say("snake", "sync", {"since_committed_id": 0})
    say(hub, "c1", "submit_events", {"events": [without(FULL["camel"], ("projectId", "meta"))]})
    hub.fan_out(SYNC_LEDGER)
    hub.heard("snake")
    broadcast = hub.heard("snake")["payload"]
    hub.say("snake", "sync", {"since_committed_id": 0})
    assert hub.heard("snake")["payload"]["events"] == [broadcast]
    assert set(broadcast) == {"committed_id", "id", "client_id", "partitions", "event", "status_updated_at"}
    (page,) = hub.log.pages[SYNC_LEDGER.name].values()
    archived = wrap(SYNC_LEDGER.name, page.records[0], 1, page.time_ms)
    assert json.loads(archived.payload) == {"event": broadcast["event"]}


@pytest.mark.parametrize("shape", ["camel", "project"])
def test_s16_another_shape_gets_what_it_demands_of_an_item_that_lacks_it(shape: str) -> None:
    other = {"camel": "project", "project": "camel"}[shape]
    content = stored(shape, ("projectId", "meta", "schemaVersion"))
    committed = {**content, "id": "e1", "committed_id": 1, "client_id": "me", "status_updated_at": 9}
    event = write_event(other, {**committed, "partitions": ["a"]}, "demo")
    assert (event["projectId"], event["meta"]) == ("demo", {"clientId": "me", "clientTs": 9})
    assert event.get("schemaVersion") == (1 if other == "project" else None)


def test_s16_no_client_can_write_the_note_itself() -> None:
    note = {"shape": "camel", "without": ["id", "payload"]}
    draft = check_item({**SNAKE_ITEM, "as": note}, ME, "open")
    assert getattr(draft, "body", b"").startswith(b'{"event":')


def test_a_note_is_read_back_whatever_names_it_holds() -> None:
    note = AsSent("camel", ("projectId",), ('"},"event":{', "}", "\\"))
    told, rest = split(b"{" + note.stored + b'"event":{"as":{}}}')
    assert told == {"shape": "camel", "without": ["projectId"], "partitions": ['"},"event":{', "}", "\\"]}
    assert rest == '{"event":{"as":{}}}'
    assert split(b'{"event":{}}') == ({}, '{"event":{}}')
