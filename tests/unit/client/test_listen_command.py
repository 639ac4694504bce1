"""`millrace listen`: a real server on this machine gets each event, signed, until it accepts it; then the next."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from millrace.delivery.domain.signing import new_secret
from millrace_client.commands import cli
from millrace_client.commands.connection import World
from millrace_client.sync.forwarding import of_session, of_stream
from millrace_client.tokens import Grant, sign
from tests.unit.client.fake_hub import FakeHub
from tests.unit.client.live_clients import Naps
from tests.unit.client.test_subscriber import sending

TOKEN = sign(Grant("C1", ["demo"]), "0" * 32)
SECRET = new_secret(b"k" * 24)
MAIN = "import signal, sys; from millrace_client.commands.cli import main; \
signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(main())"


class LocalServer:
    """A developer's own: gives the answers it was given, then 200, and keeps what came."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.url = ""

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(body) for _, body in self.requests]


@contextmanager
def local_server(*answers: int) -> Iterator[LocalServer]:
    kept = LocalServer(*answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.requests.append((dict(self.headers), body))
            self.send_response(kept.answers.pop(0) if kept.answers else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """The requests are kept."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        kept.url = f"http://127.0.0.1:{server.server_port}/hook"
        try:
            yield kept
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MILLRACE_HOME", str(tmp_path / "home"))
    for name in ("MILLRACE_WS_URL", "MILLRACE_TOKEN", "MILLRACE_WEBHOOK_SECRET"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(test: Coroutine[Any, Any, None]) -> None:
    async def timed() -> None:
        async with asyncio.timeout(30):
            await test

    asyncio.run(timed())


async def listen(hub: FakeHub, server: LocalServer, *arguments: str, naps: Naps | None = None) -> int:
    common = ["listen", "--ws-url", hub.url, "--token", TOKEN, "--forward-to", server.url]
    return await asyncio.to_thread(cli.main, [*common, *arguments], World(nap=naps or Naps()))


def test_an_event_is_sent_again_until_it_is_accepted_and_the_next_one_waits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    naps = Naps()

    async def test() -> None:
        async with FakeHub() as hub:
            hub.commit("a", event_id="first")
            hub.commit("a", event_id="second")
            with local_server(500, 503) as server:
                wanted = ("--project", "demo", "--count", "2", "--secret", SECRET)
                assert await listen(hub, server, *wanted, naps=naps) == 0
            ids = ["sync:demo:first"] * 3 + ["sync:demo:second"]
            assert [body["event_id"] for body in server.bodies] == ids
            for headers, body in server.requests:
                Webhook(SECRET).verify(body, headers)
            assert len({headers["webhook-id"] for headers, _ in server.requests}) == 2, "a retry has the same id"

    run(test())
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert [line.split("→ ")[1].split()[0] for line in lines] == ["500", "503", "200", "200"]
    assert all(re.search(r"\d+ ms", line) for line in lines)
    assert [bool(re.search(r"again in \d", line)) for line in lines] == [True, True, False, False]
    assert len(naps.taken) == 2
    assert f"Signed with {SECRET}" in printed.err
    assert "Stopped after position 2: 2 accepted. The next call goes on there." in printed.err


def test_the_body_is_the_one_that_a_webhook_of_the_hub_gets() -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.commit("a", event_id="e")
            with local_server() as server:
                assert await listen(hub, server, "--project", "demo", "--count", "1") == 0
            [body] = server.bodies
            assert (
                body.items()
                >= {
                    "event_id": "sync:demo:e",
                    "event_type": "sync.note",
                    "idempotency_key": "e",
                    "sequence_position": 1,
                    "source": "millrace/sync/demo",
                }.items()
            )
            assert body["payload"] == {"event": {"type": "note", "payload": {"n": 1}}}

    run(test())


def test_the_next_call_goes_on_after_what_was_accepted_and_signs_with_the_same_secret(nowhere: Path) -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            for name in ("a", "b", "c"):
                hub.commit("a", event_id=name)
            with local_server() as server:
                for _ in range(3):
                    assert await listen(hub, server, "--project", "demo", "--count", "1") == 0
            assert [body["idempotency_key"] for body in server.bodies] == ["a", "b", "c"]
            kept = (nowhere / "home" / "listen.secret").read_text().strip()
            for headers, body in server.requests:
                Webhook(kept).verify(body, headers)
            assert (nowhere / "home" / "listen.secret").stat().st_mode & 0o077 == 0

    run(test())


def test_an_event_is_given_up_only_if_told_so_and_the_log_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.commit("a")
            hub.commit("a")
            with local_server(400, 400) as server:
                assert await listen(hub, server, "--project", "demo", "--count", "2", "--attempts", "2", "--json") == 0

    run(test())
    printed = capsys.readouterr()
    tries = [json.loads(line) for line in printed.out.splitlines()]
    assert [(one["position"], one["status"], one["accepted"]) for one in tries] == [
        (1, 400, False),
        (1, 400, False),
        (2, 200, True),
    ]
    assert "1 accepted, 1 given up" in printed.err


def test_a_server_that_is_down_is_tried_again_and_gets_the_event(capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.commit("a")
            with local_server() as server:
                pass
            assert await listen(hub, server, "--project", "demo", "--count", "1", "--attempts", "3") == 0

    run(test())
    assert capsys.readouterr().out.count("→ All connection attempts failed") == 3


def test_ctrl_c_says_where_it_stopped_and_what_was_not_accepted_comes_again() -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.commit("a")
            hub.commit("a")
            with local_server(200, 500) as server:
                common = ["listen", "--project", "demo", "--ws-url", hub.url, "--token", TOKEN]
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-c", MAIN, *common, "--forward-to", server.url),
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env={**os.environ, "PYTHONUNBUFFERED": "1"},
                )
                assert process.stdout
                for _ in range(2):
                    await process.stdout.readline()
                process.send_signal(signal.SIGINT)
                _, told = await process.communicate()
                assert process.returncode == 0
                assert "Stopped after position 1: 1 accepted." in told.decode()
                assert await listen(hub, server, "--project", "demo", "--count", "1") == 0
            assert server.bodies[-1]["sequence_position"] == 2

    run(test())


@pytest.mark.parametrize(
    ("what", "number", "event_id"),
    [(("--session", "call-7"), "sequence", "realtime:call-7:e1"), (("--stream", "r/s"), "seq_no", "streams:r:s:e1")],
)
def test_sessions_and_streams_are_forwarded_too(what: tuple[str, str], number: str, event_id: str) -> None:
    event = {number: 1, "eventId": "e1", "event_id": "e1", "type": "t", "event_type": "t"}
    wanted = of_session("call-7", event) if number == "sequence" else of_stream("r", "s", event)

    async def test() -> None:
        async with FakeHub() as hub:
            hub.twists["subscribe"] += [sending(number, 1, fields=event)]
            with local_server() as server:
                assert await listen(hub, server, *what, "--count", "1") == 0
            [body] = server.bodies
            assert body["event_id"] == event_id == wanted.event_id

    run(test())


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["--project", "a", "--session", "b"],
        ["--session", "b", "--partition", "p"],
        ["--stream", "r"],
        ["--project", "a", "--secret", "short"],
        ["--project", "a", "--forward-to", "127.0.0.1:3000"],
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_sent(wrong: list[str]) -> None:
    common = ["listen", "--ws-url", "ws://127.0.0.1:9", "--token", TOKEN, "--forward-to", "http://127.0.0.1:9"]
    assert cli.main([*common, *wrong]) == 2
