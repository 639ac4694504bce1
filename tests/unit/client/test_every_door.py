"""Every operation of the API has its call in the Python client and its command. A new one must be named here."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from infra.openapi.build import META
from millrace_client import Catalog, Client, Operator, Position, Realtime, Runtime
from millrace_client.commands import cli
from millrace_client.commands.connection import World

URL = "https://hub.example"
OPERATIONS = {
    operation["operationId"]: (method.upper(), path)
    for path, methods in json.loads((META / "openapi.json").read_text())["paths"].items()
    for method, operation in methods.items()
}
PAGES = {"openapi", "docs", "docsFile", "console", "consoleFile"}
"""Looked at in a browser; `millrace console` opens it."""
JOURNAL = {"ingestBatch"}
"""Reached by capture and drain: `LocalJournal`, `millrace capture` and `millrace sync now`, with tests of their own."""
LONGEST_WAIT = 1.3
"""Seconds between the tries of a command."""
MESSAGE = {"eventId": "e", "ts": "t", "sessionId": "s"}


class AskedFor(Exception):
    """A request, in place of its answer."""

    def __init__(self, request: httpx.Request) -> None:
        self.place = request.method, request.url.raw_path.decode().partition("?")[0]


def ask(request: httpx.Request) -> httpx.Response:
    raise AskedFor(request)


NEGOTIATED = {
    "runtime_id": "r",
    "active_contract_version": 2,
    "effective_capabilities": [],
    "effective_limits": {
        "max_poll_events": 256,
        "max_event_bytes": 65536,
        "max_batch_bytes": 1048576,
        "max_extension_keys": 32,
    },
    "contract_release": "v2.5",
    "schema_namespace": "v2",
}


async def on_runtime(call: Callable[[Runtime], Awaitable[object]]) -> None:
    async with Runtime(URL, "r", "token", transport=httpx.MockTransport(ask)) as runtime:
        await call(runtime)


async def first_of(found: Any) -> None:
    await anext(aiter(found))


CALLS: Mapping[str, tuple[type[Client], Callable[[Any], object]]] = {
    "submitEvents": (Client, lambda hub: hub.submit("p", [{"id": "e"}])),
    "sync": (Client, lambda hub: hub.sync("p")),
    "health": (Client, lambda hub: hub.health()),
    "publishEvents": (Realtime, lambda hub: hub.publish(MESSAGE)),
    "replayEvents": (Realtime, lambda hub: hub.page("s")),
    "checkpoint": (Realtime, lambda hub: hub.checkpoint("s", "ui", MESSAGE)),
    "readTranscript": (Realtime, lambda hub: hub.transcript("s")),
    "realtimeMetrics": (Realtime, lambda hub: hub.metrics()),
    "readSchema": (Realtime, lambda hub: hub.schema("call.started")),
    "recordCatalogEvents": (Catalog, lambda hub: hub.put("d", {})),
    "effectiveNegotiation": (Operator, lambda hub: hub.standing.negotiation("r")),
    "createGrant": (Operator, lambda hub: hub.grants.make("r", "ticket", 60)),
    "listGrants": (Operator, lambda hub: hub.grants.list("r")),
    "revokeGrant": (Operator, lambda hub: hub.grants.revoke("r", "g")),
    "readDiagnostics": (Operator, lambda hub: next(hub.grants.read("r", "g"))),
    "readAudit": (Operator, lambda hub: next(hub.audit.newest())),
    "listTargets": (Operator, lambda hub: hub.targets.list()),
    "putTarget": (Operator, lambda hub: hub.targets.put("t", {})),
    "patchTarget": (Operator, lambda hub: hub.targets.patch("t", {})),
    "getTarget": (Operator, lambda hub: hub.targets.get("t")),
    "deleteTarget": (Operator, lambda hub: hub.targets.delete("t")),
    "drainTarget": (Operator, lambda hub: hub.targets.drain("t")),
    "listDeliveries": (Operator, lambda hub: next(hub.targets.deliveries("t"))),
    "retryDelivery": (Operator, lambda hub: hub.targets.retry("t", "e")),
    "showAttempts": (Operator, lambda hub: hub.targets.attempts("t", "e")),
    "retryMany": (Operator, lambda hub: next(hub.targets.retry_many("t", "rejected"))),
    "replayRange": (Operator, lambda hub: next(hub.targets.replay("t", "sync", "p", 1, 2))),
    "pauseTarget": (Operator, lambda hub: hub.targets.pause("t")),
    "resumeTarget": (Operator, lambda hub: hub.targets.resume("t")),
    "deliveryStatus": (Operator, lambda hub: hub.targets.status()),
    "listRetention": (Operator, lambda hub: next(hub.retention.list())),
    "planRetention": (Operator, lambda hub: hub.retention.plan("sync", "p")),
    "setRetention": (Operator, lambda hub: hub.retention.put("sync", "p", {})),
    "readRetention": (Operator, lambda hub: hub.retention.get("sync", "p")),
    "listLedgers": (Operator, lambda hub: next(hub.ledgers.list("sync"))),
    "getLedger": (Operator, lambda hub: hub.ledgers.get("sync", "p")),
    "listLedgerEvents": (Operator, lambda hub: hub.events.page("sync", "p")),
    "findLedgerEvent": (Operator, lambda hub: hub.events.find("sync", "p", "e")),
    "getOverview": (Operator, lambda hub: hub.standing.overview()),
    "listConnections": (Operator, lambda hub: next(hub.standing.connections())),
    "listDegraded": (Operator, lambda hub: next(hub.standing.degraded("r"))),
    "listNegotiations": (Operator, lambda hub: next(hub.standing.negotiations("r"))),
    "showTables": (Operator, lambda hub: hub.lake.tables()),
    "listQuarantine": (Operator, lambda hub: next(hub.quarantine.list())),
    "redriveQuarantine": (Operator, lambda hub: hub.quarantine.redrive(["q"])),
    "showQuarantined": (Operator, lambda hub: hub.quarantine.get("q")),
    "repairQuarantined": (Operator, lambda hub: hub.quarantine.repair("q", [{}])),
    "readRegistry": (Operator, lambda hub: hub.lake.registry()),
    "putRegistry": (Operator, lambda hub: hub.lake.put_registry({})),
    "listProfiles": (Operator, lambda hub: next(hub.profiles.list())),
    "setProfile": (Operator, lambda hub: hub.profiles.put("p", "open")),
    "readProfile": (Operator, lambda hub: hub.profiles.get("p")),
}
OF_RUNTIMES: Mapping[str, Callable[[Runtime], Awaitable[object]]] = {
    "negotiate": lambda runtime: runtime.negotiate(),
    "emitEvents": lambda runtime: runtime.stream("s").emit({"event_id": "e", "event_type": "a.b.c", "payload": {}}),
    "pollEvents": lambda runtime: runtime.stream("s").poll(),
    "readStatus": lambda runtime: runtime.status(),
    "createMarker": lambda runtime: runtime.markers.create("gate", Position(1.0, 2.0)),
    "listMarkers": lambda runtime: first_of(runtime.markers.list()),
    "moveMarker": lambda runtime: runtime.markers.move("gate", Position(1.0, 2.0), 1),
    "deleteMarker": lambda runtime: runtime.markers.delete("gate", 1),
}
COMMANDS: Mapping[str, str] = {
    "submitEvents": "submit --project p --partition a --type t --payload {}",
    "sync": "pull --project p",
    "health": "health",
    "publishEvents": "sessions publish s --type call.started --payload {}",
    "replayEvents": "sessions replay s",
    "checkpoint": "sessions checkpoint s --consumer ui --id e --ts t",
    "readTranscript": "sessions transcript s",
    "realtimeMetrics": "sessions metrics",
    "readSchema": "sessions schema call.started",
    "negotiate": "streams negotiate r",
    "effectiveNegotiation": "streams negotiated r",
    "emitEvents": "streams emit r s --type a.b.c --payload {}",
    "pollEvents": "streams poll r s",
    "readStatus": "streams status r",
    "createMarker": "markers put r gate --at 1,2",
    "listMarkers": "markers list r",
    "moveMarker": "markers move r gate --at 1,2 --revision 1",
    "deleteMarker": "markers delete r gate --revision 1",
    "recordCatalogEvents": "catalog put d --type t --payload {}",
    "createGrant": "grants make r --reason ticket",
    "listGrants": "grants list r",
    "revokeGrant": "grants revoke r g",
    "readDiagnostics": "grants read r g",
    "readAudit": "audit",
    "listTargets": "targets list --counts",
    "putTarget": "targets put t --type stub --source 'sync p'",
    "patchTarget": "targets put t --max-per-second 5",
    "getTarget": "targets show t",
    "deleteTarget": "targets delete t --yes",
    "drainTarget": "targets drain t",
    "listDeliveries": "deliveries t",
    "retryDelivery": "targets retry t --event e",
    "showAttempts": "deliveries t --event e",
    "retryMany": "targets retry t --status rejected",
    "replayRange": "targets replay t sync p --from 1 --to 2 --yes",
    "pauseTarget": "targets pause t",
    "resumeTarget": "targets resume t",
    "deliveryStatus": "targets list",
    "listRetention": "retention list",
    "planRetention": "retention plan sync p",
    "setRetention": "retention set sync p --max-events 5",
    "readRetention": "retention show sync p",
    "listLedgers": "ledgers sync",
    "getLedger": "ledgers sync p",
    "listLedgerEvents": "events list sync p",
    "findLedgerEvent": "events show sync p e",
    "getOverview": "overview",
    "listConnections": "connections",
    "listDegraded": "degraded r",
    "listNegotiations": "streams negotiated r --all",
    "showTables": "lake tables",
    "listQuarantine": "lake quarantine",
    "redriveQuarantine": "lake redrive q",
    "showQuarantined": "lake show q",
    "repairQuarantined": "lake repair q --file lines.jsonl",
    "readRegistry": "lake registry",
    "putRegistry": "lake put-registry registry.json",
    "listProfiles": "profiles list",
    "setProfile": "profiles set p open",
    "readProfile": "profiles show p",
}


def is_at(operation: str, place: tuple[str, str]) -> bool:
    method, path = OPERATIONS[operation]
    return place[0] == method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), place[1]) is not None


def test_every_operation_is_called_here() -> None:
    assert OPERATIONS.keys() == CALLS.keys() | OF_RUNTIMES.keys() | PAGES | JOURNAL
    assert OPERATIONS.keys() == COMMANDS.keys() | PAGES | JOURNAL


@pytest.mark.parametrize("operation", CALLS)
def test_the_client_calls_it(operation: str) -> None:
    kind, call = CALLS[operation]
    with kind(URL, "token", transport=httpx.MockTransport(ask)) as hub, pytest.raises(AskedFor) as asked:
        call(hub)
    assert is_at(operation, asked.value.place), asked.value.place


@pytest.mark.parametrize("operation", OF_RUNTIMES)
def test_the_client_of_a_runtime_calls_it(operation: str) -> None:
    with pytest.raises(AskedFor) as asked:
        asyncio.run(on_runtime(OF_RUNTIMES[operation]))
    assert is_at(operation, asked.value.place), asked.value.place


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the commands name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MILLRACE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MILLRACE_TOKEN", "T")
    Path("lines.jsonl").write_text("{}\n")
    Path("registry.json").write_text("{}")
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("operation", COMMANDS)
def test_where_nobody_listens_a_command_says_so_soon(operation: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Within two seconds, of which Python takes its part."""
    waited, began = [], time.monotonic()

    async def nap(seconds: float) -> None:
        waited.append(seconds)

    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("Connection refused")

    world = World(httpx.MockTransport(refuse), waited.append, nap=nap)
    assert cli.main([*shlex.split(COMMANDS[operation]), "--url", URL], world) == 3
    assert f"Cannot reach {URL}" in capsys.readouterr().err
    assert sum(waited) < LONGEST_WAIT
    assert time.monotonic() - began < LONGEST_WAIT, "it waited by a clock of its own"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("operation", COMMANDS)
def test_a_command_calls_it(operation: str) -> None:
    places = []

    def answer(request: httpx.Request) -> httpx.Response:
        """What other commands ask first."""
        place = AskedFor(request).place
        places.append(place)
        if is_at(operation, place):
            raise AskedFor(request)
        if place[1].endswith("/negotiate"):
            return httpx.Response(200, json=NEGOTIATED)
        if operation == "patchTarget":
            return httpx.Response(200, json={"target_id": "t"})
        return httpx.Response(404, json={"code": "not_found", "message": "no"})

    world = World(httpx.MockTransport(answer), lambda _: None)
    try:
        cli.main([*shlex.split(COMMANDS[operation]), "--url", URL], world)
    except AskedFor:
        return
    pytest.fail(f"it asked for {places}")
