"""The command line on a real hub: every example of its help works as printed, and the client's pages run."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from local import greeting, scene
from local.scene import Scene
from millrace_client import Operator, Realtime
from millrace_client.commands import cli
from tests.e2e.conftest import Hub
from tests.e2e.lake import eventually
from tests.e2e.test_readme import blocks
from tests.support.commands import EXAMPLES

ORDER = (
    *("submit", "pull", "follow", "capture", "token", "health", "ledgers", "events", "retention", "sessions"),
    *("streams", "markers", "grants", "catalog", "audit", "console", "targets", "deliveries"),
    *("overview", "connections", "degraded", "profiles", "lake"),
)
"""What an example needs, an earlier one made. `stub` waits for a target, and `sync` for a configuration: elsewhere."""


@pytest.fixture
def here(stack: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the hub runs, as `make run` leaves it."""
    stack.stack.write(tmp_path / ".local")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MILLRACE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MILLRACE_TOKEN", raising=False)
    registry = stack.http.get("/v1/registry", headers=stack.headers(roles=["operator"])).json()["registry"]
    (tmp_path / "registry.json").write_text(
        json.dumps(registry or {"types": {"order.placed": {"versions": {"1": {}}}}})
    )
    (tmp_path / "events.jsonl").write_text('{"event_id": "e1", "event_type": "note"}\n')
    return tmp_path


def test_the_examples_of_the_help_work_on_a_hub(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = {name for name, _ in EXAMPLES}
    assert set(ORDER) <= known
    calls = [words for name in ORDER for one, words in EXAMPLES if one == name]
    last = [words for words in calls if words[:2] == ["targets", "delete"]]
    for words in [*(one for one in calls if one not in last), *last]:
        if words[0] == "deliveries":
            eventually(lambda: delivered(capsys), "the target has got the event")
        capsys.readouterr()
        assert cli.main(words) == 0, f"{words}: {capsys.readouterr().err}"


def delivered(capsys: pytest.CaptureFixture[str]) -> bool:
    capsys.readouterr()
    assert cli.main(["deliveries", "archive", "--json"]) == 0
    return "order-17-paid" in capsys.readouterr().out


class Hook(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.requests.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(503 if len(hook.requests) == 1 else 204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """What came is kept."""

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_listen_forwards_projects_sessions_and_streams_of_a_hub(here: Path, hook: Hook) -> None:
    for name in ("submit", "sessions", "streams"):
        first = next(words for one, words in EXAMPLES if one == name)
        assert cli.main(first) == 0
    address = f"http://127.0.0.1:{hook.server_port}/hook"
    for words in (words for name, words in EXAMPLES if name == "listen"):
        assert cli.main([address if word.startswith("http:") else word for word in words]) == 0
    secret = (here / "home" / "listen.secret").read_text().strip()
    for headers, body in hook.requests:
        Webhook(secret).verify(body, headers)
    sources = [json.loads(body)["source"] for _, body in hook.requests]
    assert sources == ["millrace/sync/demo"] * 2 + ["millrace/realtime/call-7", "millrace/streams/pi-7/main"]


def test_the_clients_examples_of_sessions_tails_and_operators_run(
    stack: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {}
    for block in blocks("clients/python/README.md", "python"):
        if any(f"def {name}(" in block for name in ("call", "watch", "look")):
            exec(block, names)  # the page's own example
    token = stack.token(roles=["producer", "consumer", "operator"])
    names["call"](stack.http_url, token)
    asyncio.run(names["watch"](stack.ws_url, token))
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["1 transcript.final", "Hello"]
    assert said[-1] == "1 snapshot transcript.final"
    names["look"](stack.http_url, token)


def test_the_consoles_address_holds_a_token_of_an_operator(stack: Hub) -> None:
    address, _, fragment = greeting.console_of(stack.stack).partition("#token=")
    assert address == f"{stack.http_url}/console"
    token = {"Authorization": f"Bearer {fragment}"}
    assert stack.http.get("/v1/ledgers?contract=sync", headers=token).status_code == 200
    event = {"id": "console", "partitions": ["p"], "event": {"type": "t", "payload": 1}}
    sent = stack.http.post("/v1/projects/demo/submit_events", headers=token, json={"events": [event]})
    assert sent.json()["results"][0]["status"] == "committed"


def test_the_demo_leaves_a_scene_and_may_set_it_again(stack: Hub) -> None:
    token = greeting.operator_token(stack.stack)
    for _ in range(2):
        Scene(stack.http_url, token).set()
    with Operator(stack.http_url, token) as hub, Realtime(stack.http_url, token) as sessions:
        orders = [one.id for one in hub.events.list("sync", scene.PROJECT) if one.id.startswith("demo-order-")]
        assert orders == [f"demo-order-{number}" for number in range(1, 21)]
        texts = [one["text"] for one in sessions.transcript(scene.SESSION)["utterances"]]
        assert texts == [text for _, text in scene.SAID]
        assert {scene.STUB, scene.FAILING} <= {one["target_id"] for one in hub.targets.list()}
        eventually(lambda: bool(hub.targets.get(scene.FAILING)["blocked"]), "the failing target is seen to fail")
        for target in (scene.STUB, scene.FAILING):
            hub.targets.delete(target)
