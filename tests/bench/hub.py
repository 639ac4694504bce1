"""A whole hub of the bench's own, and its clients: submitting over HTTP, listening on sockets."""

from __future__ import annotations

import json
import resource
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect

from local import cloud
from local.embedded import embedded_stack
from local.emulator import free_port
from local.stack import Stack
from millrace.live.domain.messages import PROTOCOL
from millrace_client.local_stack import secret_of
from millrace_client.tokens import Grant, sign
from tests.bench.events import items

CLIENT = "bench-client"
OPEN_FILES = 4_096
PATIENCE = 60


@dataclass(frozen=True, slots=True)
class Hub:
    stack: Stack
    secret: str
    home: Path

    def token(self, project: str) -> str:
        return sign(Grant(CLIENT, [project]), self.secret)

    def client(self, service: str) -> Any:
        return cloud.at(self.stack.endpoint_url).client(service)

    @asynccontextmanager
    async def submitting(self, project: str) -> AsyncIterator[Submitting]:
        headers = {"Authorization": f"Bearer {self.token(project)}"}
        async with httpx.AsyncClient(base_url=self.stack.http_url, headers=headers, timeout=PATIENCE) as http:
            yield Submitting(http, f"/v1/projects/{project}/submit_events")

    async def listen(self, project: str, partition: str) -> ClientConnection:
        """A socket that is connected, synced to the head, and live."""
        assert self.stack.websocket_url
        socket = await connect(
            self.stack.websocket_url, open_timeout=PATIENCE, ping_interval=None, compression=None, proxy=None
        )
        await _ask(socket, "connected", "connect", token=self.token(project), client_id=CLIENT)
        await _ask(socket, "sync_response", "sync", since_committed_id=0, partitions=[partition])
        return socket


@dataclass(frozen=True, slots=True)
class Submitting:
    http: httpx.AsyncClient
    path: str

    async def __call__(self, events: Sequence[dict[str, Any]]) -> None:
        response = await self.http.post(self.path, json={"events": events})
        assert response.status_code == httpx.codes.OK, response.text
        assert all(result["status"] == "committed" for result in response.json()["results"]), response.text


def events_in(partition: str, count: int, seed: int) -> list[dict[str, Any]]:
    return [{**item, "partitions": [partition]} for item in items("realistic", count, seed)]


async def _ask(socket: ClientConnection, wanted: str, kind: str, **payload: Any) -> None:
    await socket.send(json.dumps({"type": kind, "protocol_version": PROTOCOL, "payload": payload}))
    answer = json.loads(await socket.recv())
    assert answer["type"] == wanted, answer


@contextmanager
def own_hub(parameters: Mapping[str, str] | None = None) -> Iterator[Hub]:
    """Both ends of every socket need a file; the emulator inherits the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < OPEN_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, hard), hard))
    with TemporaryDirectory() as folder, embedded_stack(Path(folder), free_port(), parameters) as stack:
        yield Hub(stack, secret_of(stack.endpoint_url, stack.region, stack.secret_arn), Path(folder))
