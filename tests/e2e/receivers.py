"""Receivers on this machine that answer as they are told, and keep what they were sent."""

from __future__ import annotations

import gzip
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Posted:
    path: str
    headers: dict[str, str]
    body: bytes
    """Unpacked."""

    @property
    def events(self) -> list[Any]:
        said = json.loads(self.body)
        listed: list[Any] = said.get("events", [said])
        return listed


Reply = tuple[int, Any]
Script = Callable[[Posted], Reply]


def accept(posted: Posted) -> Reply:
    return 200, {"results": [{"event_id": event["event_id"], "status": "success"} for event in posted.events]}


def always(status: int) -> Script:
    return lambda _: (status, {})


@dataclass
class Receiver:
    url: str = ""
    script: Script = accept
    posts: list[Posted] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [event["event_id"] for posted in list(self.posts) for event in posted.events]


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that was killed waits for no answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def receiver(script: Script = accept) -> Iterator[Receiver]:
    made = Receiver(script=script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = gzip.decompress(raw) if headers.get("content-encoding") == "gzip" else raw
            posted = Posted(self.path, headers, body)
            made.posts.append(posted)
            status, answer = made.script(posted)
            said = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
