"""What the end-to-end tests of archive and retention share: events of every contract, and the archive's lines."""

from __future__ import annotations

import gzip
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx

from millrace.lake.adapters.s3_objects import S3Objects
from millrace.lake.application.editions import Editions
from millrace.lake.domain.archive import read_lines
from millrace.lake.domain.edition import PROCESSED, File, Segment
from millrace.operators.wiring.hub import Hub as Operator
from tests.e2e.conftest import Hub

WAIT_SECONDS = 60
EVENT = {
    "event_type": "materialization.completed",
    "event_version": 1,
    "occurred_at": "2026-02-16T10:00:00Z",
    "source": "warehouse",
    "payload": {"table": "orders"},
}


def operator(hub: Hub) -> Operator:
    """The hub's own storage, as an operator's tools reach it."""
    objects = S3Objects(hub.client("s3"), hub.stack.archive_bucket)
    tables = hub.tables
    return Operator(hub.client("dynamodb"), tables["log"], tables["state"], tables["delivery"], objects)


def archived(hub: Hub, tenant: str) -> list[dict[str, Any]]:
    objects = operator(hub).objects
    found = (objects.get(listed.name) for listed in objects.list("ledger/"))
    lines = [line for one in found if one is not None for line in read_lines(one.data)]
    return [line for line in lines if line["tenant"] == tenant]


def eventually(what: Callable[[], bool], why: str) -> None:
    """Wait until it holds; the hub's consumers run behind its doors."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not what():
        assert time.monotonic() < deadline, why
        time.sleep(0.1)


def sent(hub: Hub, method: str, path: str, body: Any = None, **claims: Any) -> httpx.Response:
    return hub.http.request(method, path, headers=hub.headers(**claims), **({} if body is None else {"json": body}))


def done(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    return response.json()


def session_event(id_: str, session: str) -> dict[str, Any]:
    payload = {"utteranceId": id_, "speaker": "user", "text": "hello", "startMs": 0, "endMs": 1}
    return {
        "eventId": id_,
        "sessionId": session,
        "ts": "2026-02-16T10:00:00.000Z",
        "type": "transcript.final",
        "payload": payload,
        "schemaVersion": "1.0",
    }


def processed(hub: Hub) -> None:
    """What compaction leaves behind once it has processed every object, as far as retention looks at it."""
    objects = operator(hub).objects
    run = uuid.uuid4().hex
    editions = Editions(objects)
    current = editions.current()
    names = [listed.name for listed in objects.list("ledger/")]
    file = f"lake/runs/{run}/processed/names.json.gz"
    objects.put(file, gzip.compress(json.dumps(names).encode()))
    segment = Segment(run, len(names), (File(file, 1),))
    after = replace(current.edition, number=current.edition.number + 1, run=run).having(PROCESSED, [segment])
    assert editions.publish(current, after)
