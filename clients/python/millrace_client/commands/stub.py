"""`millrace stub`: a target on this machine that takes every event, to try delivery without a team or a token."""

from __future__ import annotations

import gzip
import json
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated

import typer

from millrace.delivery.domain.outcomes import Response
from millrace.delivery.domain.targets import BATCH_PATH
from millrace.delivery.receivers.inbox import MOST_BYTES, StubInbox
from millrace_client.commands.output import err
from millrace_client.errors import Usage

HOST = "127.0.0.1"


def stub(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0: any free port.")] = 8099,
    most: Annotated[int | None, typer.Option(min=1, help="End after so many requests.")] = None,
) -> None:
    """
    Take every event that is delivered here, and print one line for each: a target for trying things out.

    Example:

      millrace stub --port 8099
    """
    inbox = StubInbox(decide=_printed)
    try:
        server = serve(inbox, port)
    except OSError as error:
        raise Usage(f"Cannot listen on port {port}: {error}") from error
    with server:
        err.print(f"Listening on http://{HOST}:{server.server_port}")
        try:
            if most is None:
                server.serve_forever()
            else:
                for _ in range(most):
                    server.handle_request()
        except KeyboardInterrupt:
            err.print(f"{len(inbox.events)} events taken.")


def serve(inbox: StubInbox, port: int = 0) -> ThreadingHTTPServer:
    """A server on this machine only; whoever calls this runs it and closes it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = _answer(self, inbox) if self.path == BATCH_PATH else Response(404, b"{}")
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            """The inbox tells what came."""

    return ThreadingHTTPServer((HOST, port), Handler)


def _answer(request: BaseHTTPRequestHandler, inbox: StubInbox) -> Response:
    length = request.headers.get("Content-Length", "")
    if not length.isdigit() or int(length) > MOST_BYTES:
        return Response(413, b"{}")
    body = request.rfile.read(int(length))
    if request.headers.get("Content-Encoding") == "gzip":
        try:
            unpacked = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(body, MOST_BYTES + 1)
        except (zlib.error, gzip.BadGzipFile):
            return Response(400, b"{}")
        if len(unpacked) > MOST_BYTES:
            return Response(413, b"{}")
        body = unpacked
    return inbox(body)


def _printed(event: object) -> dict[str, object]:
    print(json.dumps(event, ensure_ascii=False), flush=True)
    return {"status": "success"}
