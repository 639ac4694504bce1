"""The one way out to targets: resolve once, refuse what is not public, connect to that very address (D12).

On urllib3, which botocore stands on anyway, so there is next to nothing more to ship; and because its connections can
be pointed at an address while name and certificate stay the target's. Proxies and redirects are not followed.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.client import HTTPException

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from millrace.delivery.domain.addresses import Address, Endpoint, Reach, endpoint, refusal
from millrace.delivery.domain.outcomes import MOST_ANSWER_BYTES, Response
from millrace.delivery.receivers.posting import NoAnswer, Unreached
from millrace.ledger.domain.errors import BadRequest

Resolve = Callable[[str, int], Sequence[str]]


class Refused(Unreached):
    """The address may not be connected to."""


def system_resolve(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[4][0]) for address in found]


@cache
def default_tls() -> ssl.SSLContext:
    """Made when it is first needed, and kept: reading the certificates takes a while."""
    return ssl.create_default_context()


@dataclass(frozen=True, slots=True)
class Outbound:
    """`total_s` bounds a whole exchange, however slowly a target drips."""

    reach: Reach = field(default_factory=Reach)
    connect_s: float = 10
    total_s: float = 30
    most_answer_bytes: int = MOST_ANSWER_BYTES
    resolve: Resolve = system_resolve
    tls: Callable[[], ssl.SSLContext] = default_tls

    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Raises `Unreached`, `Refused` or `NoAnswer`."""
        try:
            where = endpoint(url, self.reach)
            addresses = self._addresses(where)
        except BadRequest as error:
            raise Refused(error.message) from error
        deadline = time.monotonic() + self.total_s
        connection = self._connect(where, addresses, deadline)
        try:
            with _answered_by(connection, deadline):
                connection.request(
                    "POST",
                    where.target,
                    body=body,
                    headers={"Host": where.authority, "Accept-Encoding": "identity", **headers},
                    preload_content=False,
                )
                return self._read(connection.getresponse())
        finally:
            connection.close()

    def _addresses(self, where: Endpoint) -> list[Address]:
        """Every address the name has, now; one that may not be connected to spoils them all."""
        try:
            found = [ipaddress.ip_address(text) for text in dict.fromkeys(self.resolve(where.host, where.port))]
        except (OSError, UnicodeError) as error:
            raise Unreached("the target's name cannot be resolved") from error
        except ValueError as error:
            raise Refused("the target's name leads to something that is no address") from error
        if not found:
            raise Unreached("the target's name cannot be resolved")
        for address in found:
            if why := refusal(address, self.reach):
                raise Refused(f"The target's url {why}.")
            if where.scheme == "http" and not address.is_loopback:
                raise Refused("The target's url is not https.")
        return found

    def _connect(self, where: Endpoint, addresses: Sequence[Address], deadline: float) -> HTTPConnection:
        problem: Exception | None = None
        for address in addresses:
            if problem is not None and time.monotonic() > deadline:
                break
            connection = self._connection(where, address)
            try:
                connection.connect()
            except (HTTPError, OSError, ValueError) as error:
                connection.close()
                problem = error
            else:
                return connection
        raise Unreached(f"no connection ({type(problem).__name__})") from problem

    def _connection(self, where: Endpoint, address: Address) -> HTTPConnection:
        if where.scheme == "http":
            return HTTPConnection(str(address), where.port, timeout=self.connect_s)
        return HTTPSConnection(
            str(address),
            where.port,
            timeout=self.connect_s,
            ssl_context=self.tls(),
            server_hostname=where.host,
        )

    def _read(self, response: BaseHTTPResponse) -> Response:
        """The answer, up to the cap; one that is larger, or compressed although we asked for none, is not read."""
        if "content-encoding" in response.headers:
            raise NoAnswer("answered in an encoding that was not asked for")
        body = b""
        while chunk := response.read(self.most_answer_bytes + 1 - len(body), decode_content=False):
            body += chunk
            if len(body) > self.most_answer_bytes:
                raise NoAnswer("answered more than can be taken")
        return Response(response.status, body, response.headers.get("retry-after"))


@contextmanager
def _answered_by(connection: HTTPConnection, deadline: float) -> Iterator[None]:
    """Raises `NoAnswer`. Sockets time out per read, so a slow drip never would: a timer ends the connection."""
    sock = connection.sock
    ended = threading.Event()

    def end() -> None:
        ended.set()
        with suppress(OSError):
            # Not the TLS layer's own shutdown: the other thread is using it.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)

    sock.settimeout(None)
    timer = threading.Timer(max(deadline - time.monotonic(), 0), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (HTTPError, HTTPException, OSError, ValueError) as error:
        raise NoAnswer("no answer in time" if ended.is_set() else f"no answer ({type(error).__name__})") from error
    finally:
        timer.cancel()
    if ended.is_set():
        raise NoAnswer("no answer in time")
