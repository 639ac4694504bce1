"""One bad item of a batch never stops its neighbours: a poison planted below the handler of each shared worker.

The poison is an error that nobody foresaw, so that no worker can know it by its class. The worker does all other work,
and then fails: the platform calls it again, and its alarm goes off.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from millrace.delivery.adapters.dynamodb.directory import DynamoDirectory
from millrace.ledger import wiring as core
from millrace.ledger.adapters.doorbell import SqsDoorbell
from millrace.ledger.adapters.dynamodb.log import DynamoLog
from millrace.ledger.domain.names import Ledger, stream_ledger
from millrace.ledger.domain.page import Draft, Origin, Page, Record
from millrace.live import wiring as live_wiring
from millrace.streams import wiring as streams_wiring
from millrace.streams.adapters.dynamodb.rows import DynamoRows
from millrace.streams.application.markers import marker_group
from millrace.streams.ports import Announcement, Intent, VersionedRow
from tests.unit.runtime.test_handlers import answer, aws, changed, invoke, sample
from tests.unit.runtime.test_handlers_delivery import operator, stream_of

__all__ = ["aws", "operator"]

FIRST, POISONED, LAST = (Ledger.of("sync", "default", name) for name in ("a", "poisoned", "z"))
"""In the order in which a worker takes them: the poisoned one has a neighbour on each side."""


class Poison(Exception):
    """What nobody foresaw."""


def planted(monkeypatch: pytest.MonkeyPatch, adapter: type, method: str, poisoned: str) -> None:
    """From now on, this method of an adapter fails whenever it is asked for what is poisoned."""
    healthy = getattr(adapter, method)

    def poison(self: Any, *asked: Any, **more: Any) -> Any:
        if poisoned in {getattr(one, "name", one) for one in asked if isinstance(one, str | Ledger)}:
            raise Poison(poisoned)
        return healthy(self, *asked, **more)

    monkeypatch.setattr(adapter, method, poison)


def grown(*ledgers: Ledger) -> None:
    for ledger in ledgers:
        core.state().register(ledger)
        page = Page(1, (Record("e", b"", b"{}", ("p",)),), 0, Origin("C1"), b"nonce")
        assert core.log().append(ledger, page) is None


def read_by(consumer: str) -> list[int]:
    """Up to where this consumer has read the three ledgers."""
    return [core.state().marks(ledger).cursors.get(consumer, 0) for ledger in (FIRST, POISONED, LAST)]


def records_of(name: str, *bodies: str) -> dict[str, Any]:
    """One message per body, as the queue of this sample brings them."""
    (record,) = sample(name)["Records"]
    return {"Records": [{**record, "messageId": f"m{n}", "body": body} for n, body in enumerate(bodies)]}


def test_fan_out_broadcasts_every_other_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    grown(FIRST, POISONED, LAST)
    planted(monkeypatch, DynamoLog, "read", POISONED.name)
    records = [record for ledger in (FIRST, POISONED, LAST) for record in stream_of(ledger.name)["Records"]]
    invoke("fan_out", {"Records": records})
    assert read_by("fan_out") == [1, 0, 1]


def test_a_poisoned_ledger_does_not_stop_the_log_and_is_given_up_by_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamoDB hands over nothing that came later before a batch has succeeded: whoever fails must not fail there."""
    grown(FIRST, POISONED)
    planted(monkeypatch, DynamoLog, "read", POISONED.name)
    rung: list[tuple[int, list[Ledger]]] = []
    monkeypatch.setattr(SqsDoorbell, "ring", lambda bell, ledgers: rung.append((bell.delay_s, list(ledgers))))
    for ledger in (POISONED, FIRST):
        invoke("fan_out", stream_of(ledger.name))
    assert (live_wiring.AGAIN_SECONDS, [Ledger.to_read(POISONED.name)]) in rung
    assert read_by("fan_out") == [1, 0, 0]
    with pytest.raises(Poison):
        invoke("fan_out", records_of("index", POISONED.name))


def test_index_indexes_every_other_ledger_and_gives_back_only_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    grown(FIRST, POISONED, LAST)
    planted(monkeypatch, DynamoLog, "read", POISONED.name)
    event = records_of("index", FIRST.name, POISONED.name, '"torn', LAST.name)
    failed = invoke("index", event)["batchItemFailures"]
    assert failed == [{"itemIdentifier": "m1"}, {"itemIdentifier": "m2"}]
    assert read_by("index") == [1, 0, 1]


def test_settle_commits_the_event_of_every_other_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    """M5"""
    ledger, group = stream_ledger("default", "rt-1", "markers"), marker_group("default", "rt-1")
    for key in ("a", "poisoned", "z"):
        pending = Announcement(ledger, Draft(f"marker-{key}-1", b"x" * 17, b"{}"), "C1")
        streams_wiring.rows().put(group, key, VersionedRow(1, {"record": {}, "deleted": False}, key, pending))
        streams_wiring.rows().leave(Intent(group, key, key), 0)
    with monkeypatch.context() as poisoned:
        planted(poisoned, DynamoRows, "get", "poisoned")
        with pytest.raises(Poison):
            invoke("settle", sample("settle"))
    assert committed(ledger) == {"marker-a-1", "marker-z-1"}
    assert invoke("settle", sample("settle")) == {"settled": 1}, "it was kept for the next run"
    assert committed(ledger) == {"marker-a-1", "marker-poisoned-1", "marker-z-1"}


def committed(ledger: Ledger) -> set[str]:
    return {record.id for page in core.log().read(ledger, 0).pages for record in page.records}


def test_deliver_drains_every_other_target(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["first", "poisoned", "last"]
    for name in names:
        answer("targets", of_target("target_put", name))
    answer("ingest", sample("ingest"))
    wake = json.loads(sample("deliver")["Records"][0]["body"])
    bodies = [json.dumps({**wake, "target_id": name, "slow": True}) for name in names]
    with monkeypatch.context() as poisoned:
        planted(poisoned, DynamoDirectory, "get", "poisoned")
        with pytest.raises(Poison):
            invoke("deliver", records_of("deliver", bodies[0], bodies[1], "not a wake-up", bodies[2]))
    delivered = {name: len(answer("targets", of_target("deliveries", name))["deliveries"]) for name in names}
    assert delivered == {"first": 1, "poisoned": 0, "last": 1}


def of_target(name: str, target_id: str) -> dict[str, Any]:
    return changed(sample(name), pathParameters={"target_id": target_id})
