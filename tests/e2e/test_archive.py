"""The archive on a real stack: events of every contract appear once, wrapped; it is verified and refilled (C1, C3)."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from infra.openapi.streams import EXTENSION
from millrace.lake.domain.archive import read_lines
from tests.e2e.api import item
from tests.e2e.conftest import Hub
from tests.e2e.lake import EVENT, archived, done, eventually, operator, sent, session_event

MILLRACE = str(Path(sys.executable).parent / "millrace")


@pytest.fixture
def tenant() -> str:
    return f"tenant-{uuid.uuid4().hex[:8]}"


def everything(hub: Hub, tenant: str) -> set[tuple[str, int]]:
    """An event or two of every contract; returns their ledgers and positions."""
    token: dict[str, Any] = {"tenant": tenant, "roles": ["producer", "consumer", "operator"]}
    done(sent(hub, "POST", "/v1/projects/demo/submit_events", {"events": [item("a", 1), item("b", 2)]}, **token))
    for session in ("s1", "s2", "s3"):
        done(sent(hub, "POST", "/v1/realtime/events", session_event(f"e-{session}", session), **token))
    done(sent(hub, "POST", "/v1/runtimes/rt/negotiate", {"supported_contract_versions": [2]}, **token))
    done(sent(hub, "POST", "/v1/runtimes/rt/streams/main/events", EXTENSION, **token))
    marker = {"label": "x", "position": {"lat": 1.0, "lon": 2.0}, "marker_id": "m1"}
    done(sent(hub, "POST", "/v1/runtimes/rt/markers", marker, **token))
    done(sent(hub, "POST", "/v1/catalog/orders/events", EVENT, **token))
    grant = {"reason": "test", "ttl_s": 60}
    done(sent(hub, "POST", "/v1/runtimes/rt/diagnostics/grants", grant, **token))
    one = ["realtime#{}#s1", "realtime#{}#s2", "realtime#{}#s3", "streams#{}#rt#main", "streams#{}#rt#markers"]
    ledgers = {name.format(tenant) for name in [*one, "catalog#{}#orders", "audit#{}"]}
    seconds = {(f"audit#{tenant}", 2), (f"sync#{tenant}#demo", 2)}
    return {(name, 1) for name in [*ledgers, f"sync#{tenant}#demo"]} | seconds


def positions(hub: Hub, tenant: str) -> list[tuple[str, int]]:
    return [(line["ledger"], line["sequence_position"]) for line in archived(hub, tenant)]


def test_events_of_every_contract_are_archived_once_in_the_envelope(stack: Hub, tenant: str) -> None:
    expected = everything(stack, tenant)
    eventually(lambda: set(positions(stack, tenant)) == expected, "not everything was archived")
    lines = {line["ledger"].split("#")[0] + line["idempotency_key"]: line for line in archived(stack, tenant)}
    assert len(lines) == len(expected) == len(positions(stack, tenant))
    for line in lines.values():
        contract = line["ledger"].split("#")[0]
        assert all(line[field] for field in ("event_type", "event_version", "occurred_at", "source", "payload"))
        if contract != "catalog":
            assert line["event_type"].startswith(f"{contract}.")
            assert line["source"].startswith(f"millrace/{contract}")
    assert lines["synca"]["event_type"] == "sync.t"
    assert lines["synca"]["partitions"] == ["p1"]
    assert lines["realtimee-s1"]["occurred_at"] == "2026-02-16T10:00:00Z"
    assert lines["streamsevt_2"]["event_version"] == 2
    (recorded,) = (line for line in lines.values() if line["ledger"].startswith("catalog"))
    assert (recorded["event_type"], recorded["source"]) == ("materialization.completed", "warehouse")


def test_a_ring_that_comes_again_archives_nothing_twice(stack: Hub, tenant: str) -> None:
    expected = everything(stack, tenant)
    eventually(lambda: set(positions(stack, tenant)) == expected, "not everything was archived")
    ledger = f"sync#{tenant}#demo"
    record = {"dynamodb": {"Keys": {"b": {"S": f"{ledger}#0"}, "f": {"N": "1"}}}, "eventName": "INSERT"}
    for _ in range(2):
        answer = stack.client("lambda").invoke(
            FunctionName=stack.stack.functions["archive"], Payload=json.dumps({"Records": [record]})
        )
        assert "FunctionError" not in answer, answer["Payload"].read()
    assert sorted(positions(stack, tenant)) == sorted(expected)


def verify(hub: Hub, folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    hub.stack.write(folder / ".local")
    command = [MILLRACE, "archive", "verify", "--json", *options]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.stdout, run.stderr
    told: dict[str, Any] = json.loads(run.stdout)
    return run.returncode, told


def test_a_gap_is_named_and_refilled(stack: Hub, tenant: str, tmp_path: Path) -> None:
    """The operator's command, on the stack's own tables and bucket."""
    expected = everything(stack, tenant)
    eventually(lambda: set(positions(stack, tenant)) == expected, "not everything was archived")
    objects = operator(stack).objects
    for listed in list(objects.list("ledger/")):
        found = objects.get(listed.name)
        if found is not None and any(line["tenant"] == tenant for line in read_lines(found.data)):
            objects.delete(listed.name)
    code, told = verify(stack, tmp_path)
    assert (code, told["sound"]) == (1, False)
    assert told["gaps"][f"sync#{tenant}#demo"] == [[1, 2]]
    code, told = verify(stack, tmp_path, "--refill")
    assert code == 0
    assert told["refilled"]
    assert sorted(positions(stack, tenant)) == sorted(expected)
    code, told = verify(stack, tmp_path)
    assert (code, told["gaps"], told["repeated"], told["different"], told["damaged"]) == (0, {}, {}, {}, {})
