"""Talking to a hub's streams contract as a runtime would, and reaching into its stores as only a test may."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from millrace.ledger.adapters.dynamodb.log import DynamoLog
from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.application.prune import Prune
from millrace.ledger.domain.names import Ledger, stream_ledger
from millrace.streams.adapters.dynamodb.raw_values import DynamoRawValues
from millrace.streams.adapters.dynamodb.rows import DynamoRows
from millrace.streams.adapters.dynamodb.runtimes import DynamoRuntimes
from tests.e2e.conftest import Hub
from tests.e2e.processes import function_processes

TENANT = "default"
ERROR_KEYS = {"machine_code", "category", "retryable", "is_user_actionable", "message", "details"}
EVERY_ROLE = ["producer", "consumer", "operator"]
KEYED_FUNCTIONS = ("emit", "poll", "markers", "diagnostics", "socket")
"""Those that know the stream secret, and keep it for a while."""


def event(id_: str, **changes: Any) -> dict[str, Any]:
    return {
        "event_id": id_,
        "contract_version": 2,
        "ts_ms": 1_771_236_000_000,
        "event_type": "HealthSnapshot",
        "severity": "info",
        "source_component": "router",
        "payload": {"load": 1},
        **changes,
    }


@dataclass(frozen=True)
class Runtime:
    """One runtime of a hub. Claims given here or to a call replace those of the usual token."""

    hub: Hub
    id: str
    claims: dict[str, Any] = field(default_factory=dict)
    http: httpx.Client | None = None
    """In place of the hub's own, which is without a token too."""

    @property
    def path(self) -> str:
        return f"/v1/runtimes/{self.id}"

    def ask(self, method: str, path: str, claims: dict[str, Any] | None = None, **request: Any) -> httpx.Response:
        """Of a path below the runtime's own, or of any that begins at the root."""
        headers = self.hub.headers(**{**self.claims, **(claims or {})}) | request.pop("headers", {})
        url = path if path.startswith("/v1/") else self.path + path
        return (self.http or self.hub.http).request(method, url, headers=headers, **request)

    def good(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        response = self.ask(method, path, **request)
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        return body

    def negotiate(self, **asked: Any) -> dict[str, Any]:
        return self.good("POST", "/negotiate", json={"supported_contract_versions": [2], **asked})

    def emit(self, stream: str, *events: Any) -> list[dict[str, Any]]:
        """One result each, errors among them."""
        results: list[dict[str, Any]] = self.good("POST", f"/streams/{stream}/events", json={"events": list(events)})[
            "results"
        ]
        return results

    def ask_poll(self, stream: str, cursor: str | None = None, **query: Any) -> httpx.Response:
        given = {} if cursor is None else {"cursor": cursor}
        return self.ask("GET", f"/streams/{stream}/events", params={**given, **query})

    def poll(self, stream: str, cursor: str | None = None, **query: Any) -> dict[str, Any]:
        response = self.ask_poll(stream, cursor, **query)
        assert response.status_code == 200, response.text
        batch: dict[str, Any] = response.json()
        assert batch.keys() == {"events", "next_cursor", "dropped_count"}
        return batch

    def events(self, stream: str) -> list[dict[str, Any]]:
        """A whole stream, poll by poll."""
        batch = self.poll(stream)
        found = list(batch["events"])
        while batch["events"]:
            batch = self.poll(stream, batch["next_cursor"])
            found += batch["events"]
        return found

    def ledger(self, stream: str) -> Ledger:
        return stream_ledger(self.claims.get("tenant", TENANT), self.id, stream)

    def prune(self, stream: str, through: int) -> None:
        stores = Stores.of(self.hub)
        assert Prune(stores.log, stores.state, ())(self.ledger(stream), through).removed


def negotiated(hub: Hub, id_: str, claims: dict[str, Any] | None = None, **asked: Any) -> Runtime:
    runtime = Runtime(hub, id_, claims or {})
    runtime.negotiate(**asked)
    return runtime


def error(response: httpx.Response, status: int | None = None) -> dict[str, Any]:
    """The body of a refusal, which has the shape of T12."""
    assert 400 <= response.status_code < 500, (response.status_code, response.text)
    assert status in (None, response.status_code), response.text
    return sdk_error(response.json())


def sdk_error(body: dict[str, Any]) -> dict[str, Any]:
    assert body.keys() == ERROR_KEYS, body
    assert body["machine_code"].startswith(f"SDK_{body['category'].upper()}_")
    assert isinstance(body["retryable"], bool)
    assert isinstance(body["is_user_actionable"], bool)
    assert body["message"].endswith(".")
    assert isinstance(body["details"], dict)
    return body


def code(response: httpx.Response, status: int | None = None) -> str:
    return str(error(response, status)["machine_code"])


@dataclass(frozen=True)
class Stores:
    """The hub's own tables through the product's adapters."""

    log: DynamoLog
    state: DynamoState
    rows: DynamoRows
    runtimes: DynamoRuntimes
    raw_values: DynamoRawValues

    @classmethod
    def of(cls, hub: Hub) -> Stores:
        client, tables, together = hub.client("dynamodb"), hub.tables, Threads()
        return cls(
            DynamoLog(client, tables["log"], together),
            DynamoState(client, tables["state"]),
            DynamoRows(client, tables["state"]),
            DynamoRuntimes(client, tables["state"], together, now_ms),
            DynamoRawValues(client, tables["diagnostics"], together),
        )


def numbers(batch: dict[str, Any]) -> list[int]:
    return [one["seq_no"] for one in batch["events"]]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def with_http(runtime: Runtime, http: httpx.Client) -> Runtime:
    return replace(runtime, http=http)


def rotate_stream_secret(hub: Hub) -> None:
    rotate(hub, "StreamSecretArn")
    restart(hub, *KEYED_FUNCTIONS)


def rotate(hub: Hub, output: str, value: str = "") -> str:
    """A new value for the secret that an output of the stack names, as an operator gives it; returns it."""
    stacks = hub.client("cloudformation").describe_stacks(StackName=hub.stack.stack_name)["Stacks"]
    arn = next(out["OutputValue"] for out in stacks[0]["Outputs"] if out["OutputKey"] == output)
    chosen = value or os.urandom(32).hex()
    hub.client("secretsmanager").put_secret_value(SecretId=arn, SecretString=chosen)
    return chosen


def restart(hub: Hub, *functions: str) -> None:
    """End the functions' processes: the next calls start new ones, which remember nothing."""
    names = [hub.stack.functions[function] for function in functions]
    ended = set(_processes(hub, names))
    for process in ended:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while ended & set(_processes(hub, names)):
        assert time.monotonic() < deadline, "a killed process lives on"


def _processes(hub: Hub, names: list[str]) -> Iterator[int]:
    for name in names:
        yield from function_processes(hub, name)
