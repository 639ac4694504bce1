"""A target on this machine that answers as a test says, down to the bytes and their timing."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: bytes
    server_name: str | None = None

    @property
    def text(self) -> bytes:
        return gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body

    @property
    def ids(self) -> list[str]:
        content = json.loads(self.text)
        return [event["event_id"] for event in content.get("events", [content])]


Behaviour = Callable[[socket.socket, Request], None]


@dataclass
class LocalTarget:
    """Behaviours are used in order; the last one stays."""

    behaviours: list[Behaviour]
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError):
            request = _read(connection, self.names[-1] if self.names else None)
            self.requests.append(request)
            behaviour = self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]
            behaviour(connection, request)


@contextmanager
def local_target(*behaviours: Behaviour, tls: ssl.SSLContext | None = None) -> Iterator[LocalTarget]:
    target = LocalTarget(list(behaviours))
    listener = socket.create_server(("127.0.0.1", 0))
    target.port = listener.getsockname()[1]
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: target.names.append(name)
    threads: list[threading.Thread] = []

    def handle(connection: socket.socket) -> None:
        try:
            wrapped = connection if tls is None else tls.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        target.serve(wrapped)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threads.append(threading.Thread(target=handle, args=(connection,)))
                threads[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield target
    finally:
        target.closing.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join()
        for thread in threads:
            thread.join()


def answer(status: int, body: Any = b"", **headers: str) -> Behaviour:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    def say(connection: socket.socket, request: Request) -> None:
        connection.sendall(_head(status, len(raw), headers) + raw)

    return say


def results(**statuses: str | None) -> Behaviour:
    """These events so; the others are left out."""
    listed = [{"event_id": id_, "status": status} for id_, status in statuses.items()]
    return answer(200, {"results": listed})


def accept(connection: socket.socket, request: Request) -> None:
    answer(200, {"results": [{"event_id": id_, "status": "success"} for id_ in request.ids]})(connection, request)


def close(connection: socket.socket, request: Request) -> None:
    """No answer."""


def half(connection: socket.socket, request: Request) -> None:
    """The first part of a good answer; the rest never comes."""
    body = json.dumps({"results": [{"event_id": id_, "status": "success"} for id_ in request.ids]}).encode()
    connection.sendall(_head(200, len(body), {}) + body[: len(body) // 2])


def drip(first: bytes) -> Behaviour:
    """`first` at once, then a byte now and then, for ever."""

    def say(connection: socket.socket, request: Request) -> None:
        connection.sendall(first)
        while not threading.Event().wait(0.02):
            connection.sendall(b"x")

    return say


def silent(connection: socket.socket, request: Request) -> None:
    """The connection stays open until the other side has had enough."""
    connection.recv(1)


def endless(connection: socket.socket, request: Request) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b" " * 65536)


def _head(status: int, length: int, headers: dict[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status} X",
        f"Content-Length: {length}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def _read(connection: socket.socket, server_name: str | None) -> Request:
    raw = b""
    while b"\r\n\r\n" not in raw:
        raw += _some(connection)
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    while len(body) < int(headers["content-length"]):
        body += _some(connection)
    return Request(first.split(" ")[1], headers, body, server_name)


def _some(connection: socket.socket) -> bytes:
    chunk = connection.recv(65536)
    if not chunk:
        raise OSError("the other side is gone")
    return chunk
