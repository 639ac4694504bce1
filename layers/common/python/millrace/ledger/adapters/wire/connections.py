"""Kept-alive connections to one endpoint of AWS, and HTTP/1.1 on them, as far as AWS speaks it."""

from __future__ import annotations

import os
import select
import socket
import ssl
import weakref
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import BinaryIO
from urllib.parse import urlsplit

from millrace.ledger.adapters.wire.failures import AwsUnanswered

MOST_LINE, MOST_HEADERS = 64 * 1024, 100


@dataclass(frozen=True, slots=True)
class AwsEndpoint:
    scheme: str
    host: str
    port: int
    path: str
    """What every path at this endpoint begins with."""
    authority: str
    """The header `Host`."""

    @classmethod
    def of(cls, url: str) -> AwsEndpoint:
        parts = urlsplit(url)
        host, default = parts.hostname or "", 443 if parts.scheme == "https" else 80
        if parts.scheme not in ("http", "https") or not host:
            raise ValueError("an endpoint of AWS must be an address that begins with https:// or http://")
        named = f"[{host}]" if ":" in host else host
        port = parts.port or default
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        return cls(parts.scheme, host, port, path, named if port == default else f"{named}:{port}")


@dataclass(frozen=True, slots=True)
class WireLimits:
    connect_seconds: float
    read_seconds: float
    most_idle: int


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    reusable: bool


def request_bytes(method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    return f"{method} {path or '/'} HTTP/1.1\r\n{lines}content-length: {len(body)}\r\n\r\n".encode("latin-1") + body


class KeptConnections:
    """Thread-safe. KeptConnections beyond those that may idle are opened as needed and closed after use."""

    def __init__(self, target: AwsEndpoint, limits: WireLimits) -> None:
        self.target = target
        self._limits = limits
        self._idle: deque[_Connection] = deque()
        weakref.finalize(self, _close_all, self._idle)

    def exchange(self, request: bytes) -> HttpAnswer:
        """Raises `AwsUnanswered`. Whether the request took effect is then unknown."""
        connection = self._take()
        try:
            answer = connection.exchange(request)
        except BaseException as error:
            connection.close()
            if isinstance(error, (OSError, ValueError)):
                raise AwsUnanswered(_kind(error), self.target.authority) from error
            raise
        if answer.reusable and len(self._idle) < self._limits.most_idle:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    def _take(self) -> _Connection:
        """The one that was used last: those that AWS closed meanwhile are at the other end."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._open()
            if not connection.is_dropped():
                return connection
            connection.close()

    def _open(self) -> _Connection:
        target, limits = self.target, self._limits
        try:
            plain = socket.create_connection((target.host, target.port), limits.connect_seconds)
        except OSError as error:
            kind = "ConnectTimeoutError" if isinstance(error, TimeoutError) else "EndpointConnectionError"
            raise AwsUnanswered(kind, target.authority) from error
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wrapped = _context().wrap_socket(plain, server_hostname=target.host) if target.scheme == "https" else plain
            wrapped.settimeout(limits.read_seconds)
        except OSError as error:
            plain.close()
            kind = "ConnectTimeoutError" if isinstance(error, TimeoutError) else "SSLError"
            raise AwsUnanswered(kind, target.authority) from error
        return _Connection(wrapped)


def _kind(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "ReadTimeoutError"
    return "SSLError" if isinstance(error, ssl.SSLError) else "ConnectionClosedError"


def _close_all(connections: deque[_Connection]) -> None:
    while connections:
        connections.pop().close()


@cache
def _context() -> ssl.SSLContext:
    """Certificates are checked as the machine's settings, or AWS's own setting, say."""
    bundle = os.environ.get("AWS_CA_BUNDLE") or os.environ.get("REQUESTS_CA_BUNDLE")
    return ssl.create_default_context(cafile=bundle)


class _Connection:
    __slots__ = ("_reader", "_socket")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._reader: BinaryIO = connected.makefile("rb")

    def close(self) -> None:
        try:
            self._reader.close()
        finally:
            self._socket.close()

    def is_dropped(self) -> bool:
        """Nobody asked, so whatever can be read now is the other side's goodbye."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def exchange(self, request: bytes) -> HttpAnswer:
        self._socket.sendall(request)
        version, status = self._status()
        headers = self._headers()
        while 100 <= status < 200:
            version, status = self._status()
            headers = self._headers()
        chosen = headers.get("connection", "").lower()
        reusable = "close" not in chosen if version == b"HTTP/1.1" else "keep-alive" in chosen
        if status in (204, 304):
            return HttpAnswer(status, headers, b"", reusable)
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return HttpAnswer(status, headers, self._chunks(), reusable)
        if "content-length" in headers:
            return HttpAnswer(status, headers, self._exactly(int(headers["content-length"])), reusable)
        return HttpAnswer(status, headers, self._reader.read(), reusable=False)

    def _line(self) -> bytes:
        line = self._reader.readline(MOST_LINE)
        if not line.endswith(b"\n"):
            raise ConnectionError("the connection ended, or a line does not")
        return line.rstrip(b"\r\n")

    def _status(self) -> tuple[bytes, int]:
        version, _, rest = self._line().partition(b" ")
        if not version.startswith(b"HTTP/1."):
            raise ConnectionError("what was read is no HTTP")
        return version, int(rest[:3])

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        for _ in range(MOST_HEADERS):
            line = self._line()
            if not line:
                return headers
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        raise ConnectionError("the answer has too many headers")

    def _exactly(self, length: int) -> bytes:
        body = self._reader.read(length)
        if len(body) != length:
            raise ConnectionError("the connection ended within an answer")
        return body

    def _chunks(self) -> bytes:
        chunks = []
        while length := int(self._line().partition(b";")[0], 16):
            chunks.append(self._exactly(length))
            self._line()
        while self._line():
            pass
        return b"".join(chunks)
