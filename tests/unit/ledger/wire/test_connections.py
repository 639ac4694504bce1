"""Kept-alive connections, against a server that says byte for byte what the test wants."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from millrace.ledger.adapters.wire.connections import AwsEndpoint, KeptConnections, WireLimits, request_bytes
from millrace.ledger.adapters.wire.failures import AwsUnanswered

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Name: a: b\r\n\r\nok"
REQUEST = request_bytes("POST", "/", {"host": "h"}, b"body")


@dataclass
class Server:
    """Answers one request after the other; None closes the connection instead of an answer."""

    answers: list[bytes | None] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    opened: int = 0
    url: str = ""
    closed: threading.Event = field(default_factory=threading.Event)
    hold: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            state.opened += 1
            while state.answers:
                if not (received := self.request.recv(65536)):
                    return
                state.requests.append(received)
                answer = state.answers.pop(0)
                if answer is None:
                    return
                self.request.sendall(answer)
                if not state.answers:
                    state.hold.wait(5)

        def finish(self) -> None:
            self.request.shutdown(socket.SHUT_RDWR)
            state.closed.set()

    class Threaded(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True
        request_queue_size = 64

    with Threaded(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        state.url = f"http://127.0.0.1:{serving.server_address[1]}"
        yield state
        state.hold.set()
        serving.shutdown()


def to(server: Server, most_idle: int = 2, read_seconds: float = 5) -> KeptConnections:
    return KeptConnections(AwsEndpoint.of(server.url), WireLimits(1, read_seconds, most_idle))


def test_one_connection_serves_many_requests(server: Server) -> None:
    server.answers = [OK, OK, OK]
    connections = to(server)
    answers = [connections.exchange(REQUEST) for _ in range(3)]
    assert {(answer.status, answer.body, answer.headers["x-name"]) for answer in answers} == {(200, b"ok", "a: b")}
    assert (server.opened, server.requests) == (1, [REQUEST] * 3)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nA;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
            b"ok0123456789",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", b""),
    ],
    ids=["chunked", "continue", "no content", "bare line ends"],
)
def test_every_form_of_an_answer_is_read_to_its_end(server: Server, answer: bytes, body: bytes) -> None:
    server.answers = [answer, OK]
    connections = to(server)
    assert connections.exchange(REQUEST).body == body
    assert connections.exchange(REQUEST).body == b"ok"
    assert server.opened == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
    ids=["close", "HTTP/1.0"],
)
def test_a_connection_that_the_server_ends_is_not_used_again(server: Server, answer: bytes) -> None:
    server.answers = [answer, OK]
    connections = to(server)
    connections.exchange(REQUEST)
    connections.exchange(REQUEST)
    assert server.opened == 2


def test_one_that_the_server_closed_while_it_was_idle_is_not_used_again(server: Server) -> None:
    server.answers = [OK]
    connections = to(server)
    connections.exchange(REQUEST)
    server.hold.set()
    assert server.closed.wait(5)
    server.answers = [OK]
    assert connections.exchange(REQUEST).body == b"ok"
    assert server.opened == 2


@pytest.mark.parametrize(
    "answer",
    [None, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", b"no HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-"],
    ids=["nothing", "half a body", "another protocol", "half a head"],
)
def test_an_answer_that_is_cut_off_is_no_answer(server: Server, answer: bytes | None) -> None:
    server.answers = [answer]
    server.hold.set()
    with pytest.raises(AwsUnanswered) as failure:
        to(server).exchange(REQUEST)
    assert failure.value.kind == "ConnectionClosedError"


def test_an_answer_that_takes_too_long_is_no_answer_and_its_connection_is_not_used_again(server: Server) -> None:
    server.answers = [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"]
    connections = to(server, read_seconds=0.05)
    with pytest.raises(AwsUnanswered) as failure:
        connections.exchange(REQUEST)
    assert failure.value.kind == "ReadTimeoutError"
    server.answers = [OK]
    assert connections.exchange(REQUEST).body == b"ok"
    assert server.opened == 2


def test_where_nobody_listens_there_is_no_answer() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(AwsUnanswered) as failure:
        KeptConnections(AwsEndpoint.of(f"http://127.0.0.1:{port}"), WireLimits(1, 1, 1)).exchange(REQUEST)
    assert failure.value.kind == "EndpointConnectionError"


def test_a_server_that_is_not_encrypted_where_it_should_be_is_not_talked_to(server: Server) -> None:
    server.answers = [b"HTTP/1.1 400 Bad Request\r\n\r\n"]
    target = AwsEndpoint.of(server.url.replace("http:", "https:"))
    with pytest.raises(AwsUnanswered) as failure:
        KeptConnections(target, WireLimits(1, 1, 1)).exchange(REQUEST)
    assert failure.value.kind == "SSLError"
    assert REQUEST not in server.requests


def test_many_threads_each_have_a_connection_and_few_are_kept(server: Server) -> None:
    server.answers = [OK] * 40
    connections = to(server, most_idle=1)
    threads = [threading.Thread(target=lambda: [connections.exchange(REQUEST) for _ in range(5)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 40
    assert len(connections._idle) <= 1


@pytest.mark.parametrize(
    ("url", "authority", "path"),
    [
        ("https://dynamodb.eu-west-1.amazonaws.com", "dynamodb.eu-west-1.amazonaws.com", ""),
        ("https://x:443/live", "x", "/live"),
        ("http://localhost:4566", "localhost:4566", ""),
        ("http://[::1]:80/a?b=c", "[::1]", "/a?b=c"),
    ],
)
def test_an_address_is_taken_apart(url: str, authority: str, path: str) -> None:
    assert (AwsEndpoint.of(url).authority, AwsEndpoint.of(url).path) == (authority, path)


@pytest.mark.parametrize("url", ["", "localhost:4566", "ftp://x", "https://"])
def test_what_is_no_address_of_the_web_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="begins with https"):
        AwsEndpoint.of(url)
