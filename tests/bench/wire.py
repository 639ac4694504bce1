"""The lean wire beside boto3: CPU of a call to storage and of a post to a connection, in one run at one server."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
from botocore.config import Config

from local.emulator import emulator, free_port
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.adapters.wire.clients import service_at
from millrace.ledger.adapters.wire.credentials import Credentials
from millrace.ledger.adapters.wire.services import LeanSockets
from millrace.live.adapters.socket_wire import ApiGatewayWire
from millrace.runtime.clients import SOCKET_LIMITS, SOCKET_RETRIES
from tests.bench.report import Figure, Section, Table, at_most
from tests.support.aws_tables import client_for, create_tables, lean_client_for

CALLS, ROUNDS, POSTS = 100, 4, 300
RATIO, TIMES = 0.35, 4.0
ITEM = {"o": {"S": "client"}, "n": {"B": b"n" * 12}, "r": {"N": "1"}, "e": {"B": b"e" * 500}}
TEXT = '{"type":"event","data":"' + "x" * 400 + '"}'
GATEWAY = """
import socketserver
class Gateway(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            length = 0
            while (header := self.rfile.readline()) not in (b"\\r\\n", b""):
                name, _, value = header.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            self.rfile.read(length)
            self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\nx-amzn-RequestId: r\\r\\n\\r\\n")
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128
with Server(("127.0.0.1", 0), Gateway) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""
"""Takes every post: what is measured is the side that posts."""


def run() -> Section:
    calls, posts = _calls(), _posts()
    figures = [at_most(f"CPU of {row['call']}, lean / boto3", RATIO, row["lean / boto3"]) for row in calls]
    times = posts[1]["posts a second on one core"] / posts[0]["posts a second on one core"]
    wanted, measured = f"≥ {TIMES:g} ×", f"{times:.1f} ×"
    figures.append(Figure("posts a second on one core, lean / boto3", wanted, measured, times >= TIMES))
    return Section(
        [
            Table("calls", f"CPU of a call, ms: best of {ROUNDS} rounds of {CALLS}, in turn", calls),
            Table("posts", f"{POSTS} posts by 16 threads: CPU of the process that posts, best of {ROUNDS}", posts),
        ],
        figures,
    )


def _calls() -> list[dict[str, Any]]:
    with TemporaryDirectory() as home, emulator(Path(home), free_port()) as emulated:
        wires: dict[str, Any] = {
            "boto3": client_for(emulated.endpoint_url),
            "lean": lean_client_for(emulated.endpoint_url),
        }
        table = create_tables(wires["boto3"], ("Log",)).log
        return [_call_row(name, call, wires) for name, call in _storage_calls(table).items()]


def _storage_calls(table: str) -> dict[str, Callable[[Any, int], object]]:
    key = {"b": {"S": "ledger#0"}, "f": {"N": "1"}}
    values = {":b": {"S": "ledger#0"}, ":at": {"N": "0"}}
    return {
        "put_item": lambda client, number: client.put_item(
            TableName=table, Item={**ITEM, **key, "f": {"N": str(number)}}
        ),
        "get_item": lambda client, _: client.get_item(TableName=table, Key=key, ConsistentRead=True),
        "query": lambda client, _: client.query(
            TableName=table,
            KeyConditionExpression="b = :b AND f > :at",
            ExpressionAttributeValues=values,
            ConsistentRead=True,
            Limit=3,
        ),
    }


def _call_row(name: str, call: Callable[[Any, int], object], wires: dict[str, Any]) -> dict[str, Any]:
    best = dict.fromkeys(wires, float("inf"))
    for _ in range(ROUNDS):
        for wire, client in wires.items():
            call(client, 1)
            started = time.process_time()
            for number in range(1, CALLS + 1):
                call(client, number)
            best[wire] = min(best[wire], (time.process_time() - started) / CALLS * 1000)
    ratio = round(best["lean"] / best["boto3"], 2)
    return {"call": name, **{wire: round(taken, 3) for wire, taken in best.items()}, "lean / boto3": ratio}


def _posts() -> list[dict[str, Any]]:
    with _gateway() as url:
        wires = {"boto3": ApiGatewayWire(_boto3_sockets(url)), "lean": ApiGatewayWire(_lean_sockets(url))}
        best = dict.fromkeys(wires, float("inf"))
        for _ in range(ROUNDS):
            for name, wire in wires.items():
                best[name] = min(best[name], _cpu_of_posts(wire))
    return [
        {
            "wire": name,
            "CPU of a post, ms": round(cpu / POSTS * 1000, 3),
            "posts a second on one core": round(POSTS / cpu),
        }
        for name, cpu in best.items()
    ]


def _cpu_of_posts(wire: ApiGatewayWire) -> float:
    together = Threads(16)
    jobs = [partial(wire.post, f"connection{number:05d}=", TEXT) for number in range(POSTS)]
    together(jobs[:32])
    started = time.process_time()
    assert all(together(jobs))
    return time.process_time() - started


def _boto3_sockets(url: str) -> Any:
    config = Config(retries={"mode": "standard", "max_attempts": SOCKET_RETRIES}, max_pool_connections=64)
    return boto3.client(
        "apigatewaymanagementapi",
        "us-east-1",
        endpoint_url=url,
        config=config,
        aws_access_key_id="k",
        aws_secret_access_key="s",
    )


def _lean_sockets(url: str) -> Any:
    keys = Credentials("k", "s")
    return LeanSockets(service_at(url, "execute-api", "us-east-1", SOCKET_LIMITS, SOCKET_RETRIES, lambda: keys))


@contextmanager
def _gateway() -> Iterator[str]:
    with subprocess.Popen([sys.executable, "-c", GATEWAY], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/live"
        finally:
            process.terminate()
