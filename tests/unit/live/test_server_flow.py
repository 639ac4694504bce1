"""S1, S2, S3, S9, S10: what the hub does with a submit, step by step, and what is left when it dies on the way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from millrace.ledger.adapters.memory import MemoryLog
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Page
from millrace.live.adapters.memory import MemoryConnections, MemorySubscriptions, MemoryWire
from millrace.live.domain.messages import LIMITS
from millrace.sync.adapters.memory import MemoryIndex
from millrace.sync.domain.read import check_sync
from tests.unit.live.test_converse import SYNC_LEDGER, Hub, item

UNTYPED = {"id": "untyped", "partitions": ["a"], "event": {"payload": {}}}


class Death(Exception):
    """The function ends where this is raised."""


class DeadWire(MemoryWire):
    def post(self, connection: str, text: str) -> bool:
        raise Death


class ToldLog(MemoryLog):
    """Tells what happens to it, in the order in which it happens."""

    happened: list[str]

    def append(self, ledger: Ledger, page: Page) -> Page | None:
        taken = super().append(ledger, page)
        self.happened.append("stored")
        return taken


class ToldWire(MemoryWire):
    happened: list[str]

    def post(self, connection: str, text: str) -> bool:
        self.happened.append(f"{json.loads(text)['type']} to {connection}")
        return super().post(connection, text)


class BrokenLog(MemoryLog):
    def append(self, ledger: Ledger, page: Page) -> Page | None:
        raise Unavailable("The log is out of reach.")


def listening(hub: Hub, connection: str, token: str = "you:*") -> None:
    hub.open(connection, token)
    hub.say(connection, "sync", {"since_committed_id": 0})
    assert hub.heard(connection)["type"] == "sync_response"


def restarted(hub: Hub) -> Hub:
    """The same storage under new processes that know of no connection; the index is still to be built."""
    return replace(
        hub,
        index=MemoryIndex(),
        connections=MemoryConnections(),
        subscriptions=MemorySubscriptions(),
        wire=MemoryWire(),
    )


def synced(hub: Hub, connection: str, since: int = 0) -> Any:
    hub.say(connection, "sync", {"since_committed_id": since})
    return hub.heard(connection)["payload"]


def test_s2_s3_rejected_items_are_told_in_the_one_answer_and_never_stored_or_broadcast() -> None:
    hub = Hub()
    hub.open("c1", "me:a")
    listening(hub, "c2")
    items = [item("first"), UNTYPED, item("elsewhere", "b"), item("last")]
    hub.say("c1", "submit_events", {"events": items}, msg_id="m1")
    (answer,) = [json.loads(text) for text in hub.wire.sent["c1"]]
    assert (answer["type"], answer["msg_id"]) == ("submit_events_result", "m1")
    results = answer["payload"]["results"]
    assert [(one["id"], one["status"]) for one in results] == [
        ("first", "committed"),
        ("untyped", "rejected"),
        ("elsewhere", "rejected"),
        ("last", "committed"),
    ]
    assert [one.get("reason") for one in results] == [None, "validation_failed", "forbidden", None]
    assert [one.get("committed_id") for one in results] == [1, None, None, 2]
    hub.fan_out(SYNC_LEDGER)
    broadcast = [json.loads(text) for text in hub.wire.sent["c2"]]
    assert [(one["type"], one["payload"]["id"]) for one in broadcast] == [
        ("event_broadcast", "first"),
        ("event_broadcast", "last"),
    ]
    stored = [event.record.id for page in hub.log.read(SYNC_LEDGER, 0).pages for event in page.events()]
    assert stored == ["first", "last"]


def test_s1_a_request_that_breaks_a_rule_as_a_whole_stores_none_of_its_items() -> None:
    hub = Hub()
    hub.open("c1")
    hub.say("c1", "submit_events", {"events": [item("good"), item("twice"), item("twice")]})
    assert hub.error("c1") == "bad_request"
    assert (hub.log.read(SYNC_LEDGER, 0).pages, hub.claims.items) == ([], {})


def test_s9_an_event_is_stored_then_answered_then_broadcast() -> None:
    hub, happened = Hub(log=ToldLog(), wire=ToldWire()), list[str]()
    hub.log.happened = hub.wire.happened = happened  # type: ignore[attr-defined]
    hub.open("c1")
    listening(hub, "c2")
    happened.clear()
    hub.say("c1", "submit_events", {"events": [item("e1")]})
    hub.fan_out(SYNC_LEDGER)
    assert happened == ["stored", "submit_events_result to c1", "event_broadcast to c2"]


def test_s9_what_could_not_be_stored_is_neither_confirmed_nor_broadcast() -> None:
    hub = Hub(log=BrokenLog())
    hub.open("c1")
    listening(hub, "c2")
    hub.say("c1", "submit_events", {"events": [item("e1")]})
    assert hub.error("c1") == "server_error"
    hub.fan_out(SYNC_LEDGER)
    assert (hub.wire.sent["c1"], hub.wire.sent["c2"]) == ([], [])


def test_s10_after_a_death_between_storing_and_broadcasting_the_retry_is_deduped_and_peers_sync_it() -> None:
    hub = Hub()
    hub.open("c1")
    hub.wire = DeadWire()
    with pytest.raises(Death):
        hub.say("c1", "submit_events", {"events": [item("e1")]})
    again = restarted(hub)
    again.now += 60_000
    again.open("peer", "you:*")
    assert [event["id"] for event in synced(again, "peer")["events"]] == ["e1"]
    again.open("c1")
    again.say("c1", "submit_events", {"events": [item("e1"), item("e2")]})
    first, second = again.heard("c1")["payload"]["results"]
    assert (first["status"], first["committed_id"], first["status_updated_at"]) == ("committed", 1, hub.now)
    assert second["committed_id"] == 2


def test_s10_what_new_processes_read_and_number_comes_from_the_log_alone() -> None:
    hub = Hub()
    hub.open("c1")
    hub.say("c1", "submit_events", {"events": [item("e1"), item("e2")]})
    again = restarted(hub)
    again.open("c1")
    assert [event["committed_id"] for event in synced(again, "c1")["events"]] == [1, 2]
    again.say("c1", "submit_events", {"events": [item("e3")]})
    assert again.heard("c1")["payload"]["results"][0]["committed_id"] == 3


def test_s6_a_sync_that_is_asked_for_again_is_answered_alike() -> None:
    hub = Hub()
    hub.open("c1")
    hub.say("c1", "submit_events", {"events": [item(f"e{number}") for number in range(5)]})
    hub.heard("c1")
    first = synced(hub, "c1", 2)
    assert [event["committed_id"] for event in first["events"]] == [3, 4, 5]
    assert synced(hub, "c1", 2) == first
    again = restarted(hub)
    again.open("c1")
    assert synced(again, "c1", 2) == first


def test_s6_s12_the_advertised_bounds_of_a_sync_are_50_and_1000_and_coerce_what_is_asked_for() -> None:
    assert (LIMITS["sync_limit_min"], LIMITS["sync_limit_max"]) == (50, 1000)
    consumer = Hub().verify("me:*")
    for asked, given in ((-1, 50), (49, 50), (50, 50), (1000, 1000), (1001, 1000)):
        assert check_sync({"since_committed_id": 0, "limit": asked}, consumer, "demo").limit == given
