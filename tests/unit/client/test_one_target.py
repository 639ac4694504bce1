"""D1: every command of the client talks to one server, and settings that disagree stop it before any network."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from millrace_client import local_stack
from millrace_client.commands import cli
from millrace_client.commands.connection import World
from millrace_client.journal.session import Surroundings
from tests.unit.client.fake_hub import FakeHub

CONFIGURED, ENVIRONMENT, LOCAL = "https://configured.example", "https://environment.example", "http://127.0.0.1:4566/x"
SECRET = "s" * 64
TOKEN = jwt.encode({"client_id": "me"}, SECRET)
COMMANDS = {
    "submit": ["submit", "--project", "p", "--partition", "a", "--type", "note", "--payload", "1", "--token", TOKEN],
    "pull": ["pull", "--project", "p", "--token", TOKEN],
    "follow": ["follow", "--project", "p", "--count", "1", "--token", TOKEN],
    "health": ["health"],
    "targets": ["targets", "list", "--token", TOKEN],
}
ANSWER = {
    "status": "ok",
    "results": [{"id": "e", "status": "committed", "committed_id": 1}],
    "events": [],
    "next_since_committed_id": 0,
    "sync_to_committed_id": 0,
    "has_more": False,
    "delivery_targets": [],
}


@dataclass
class Machine:
    """A person's machine: a home folder, an environment, and the hubs that their commands reached."""

    home: Path
    capsys: pytest.CaptureFixture[str]
    environment: dict[str, str] = field(default_factory=dict)
    answer: dict[str, Any] = field(default_factory=lambda: dict(ANSWER))
    requests: list[httpx.Request] = field(default_factory=list)

    def run(self, *arguments: str) -> int:
        world = World(httpx.MockTransport(self._answered), lambda _: None, Surroundings(self.environment))
        return cli.main([*arguments, "--home", str(self.home)], world)

    def configure(self, text: str) -> None:
        self.home.mkdir(exist_ok=True)
        (self.home / "config.toml").write_text(text)

    @property
    def reached(self) -> set[str]:
        return {str(request.url.copy_with(path="")).rstrip("/") for request in self.requests}

    @property
    def said(self) -> str:
        return " ".join(self.capsys.readouterr().err.split())

    def _answered(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(200, json=self.answer)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Machine:
    monkeypatch.chdir(tmp_path)
    machine = Machine(tmp_path / "home", capsys)
    machine.configure(f'[sync]\nserver_url = "{CONFIGURED}"\n')
    return machine


@pytest.fixture
def local_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that runs in this folder."""
    stack = {"http_url": LOCAL, "endpoint_url": "http://127.0.0.1:4566", "region": "r", "secret_arn": "arn"}
    (tmp_path / ".local").mkdir()
    (tmp_path / ".local" / "stack.json").write_text(json.dumps(stack | {"websocket_url": None}))
    monkeypatch.setattr(local_stack, "secret_of", lambda *_: SECRET)
    monkeypatch.setattr(local_stack, "answers", lambda _: True)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("variable", ["SPEC_KITTY_SAAS_URL", "MILLRACE_URL"])
def test_settings_that_disagree_stop_every_command_before_any_network(
    machine: Machine, command: str, variable: str
) -> None:
    """Required: if SPEC_KITTY_SAAS_URL disagrees with config.toml, hosted commands fail before network calls. D1."""
    machine.environment[variable] = ENVIRONMENT
    assert machine.run(*COMMANDS[command]) == 2
    assert f"{variable} is {ENVIRONMENT}, but [sync].server_url is {CONFIGURED}" in machine.said
    assert machine.requests == []


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("environment", "options", "expected"),
    [
        ({}, [], CONFIGURED),
        ({"SPEC_KITTY_SAAS_URL": f"{CONFIGURED}/"}, [], CONFIGURED),
        ({"SPEC_KITTY_SAAS_URL": ENVIRONMENT}, ["--process-override"], ENVIRONMENT),
        ({"MILLRACE_URL": ENVIRONMENT}, ["--process-override"], ENVIRONMENT),
        ({"SPEC_KITTY_SAAS_URL": ENVIRONMENT}, ["--url", "https://named.example/"], "https://named.example"),
    ],
)
def test_every_command_goes_to_the_server_that_is_resolved(
    machine: Machine, command: str, environment: dict[str, str], options: list[str], expected: str
) -> None:
    machine.environment.update(environment)
    code = machine.run(*COMMANDS[command], *options)
    assert machine.reached == {expected}
    assert code == (2 if command == "follow" else 0), "this hub does not say where its WebSocket is"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_environment_alone_is_enough(machine: Machine, command: str) -> None:
    machine.configure("")
    machine.environment["SPEC_KITTY_SAAS_URL"] = ENVIRONMENT
    machine.run(*COMMANDS[command])
    assert machine.reached == {ENVIRONMENT}


def test_two_variables_that_disagree_are_refused_even_with_an_override(machine: Machine) -> None:
    machine.environment.update(SPEC_KITTY_SAAS_URL=ENVIRONMENT, MILLRACE_URL="https://third.example")
    for options in ([], ["--process-override"]):
        assert machine.run("health", *options) == 2
        assert "MILLRACE_URL is https://third.example" in machine.said
    assert machine.run("sync", "now") == 2
    assert machine.requests == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--process-override"], "--process-override needs SPEC_KITTY_SAAS_URL"),
        (["--url", "hub.example"], "--url is not an address"),
        (["--url", ENVIRONMENT, "--process-override"], "not both"),
    ],
)
def test_what_names_no_server_or_two_is_refused(machine: Machine, arguments: list[str], said: str) -> None:
    assert machine.run("health", *arguments) == 2
    assert said in machine.said
    assert machine.requests == []


def test_a_mistake_in_a_target_does_not_stop_those_who_only_need_the_server(machine: Machine) -> None:
    machine.configure(f'[sync]\nserver_url = "{CONFIGURED}"\n[sync.targets.x]\ntype = "nonsense"\n')
    assert machine.run("health") == 0
    for text in ("[sync", "sync = 1", "[sync]\nserver_url = 1"):
        machine.configure(text)
        assert machine.run("health") == 2
        assert "config.toml" in machine.said
        assert machine.run("health", "--url", ENVIRONMENT) == 0, "it is not asked"


@pytest.mark.usefixtures("local_hub")
def test_the_hub_of_this_folder_is_used_if_nothing_else_is_named(machine: Machine) -> None:
    machine.configure("")
    assert machine.run(*COMMANDS["submit"][:-2]) == 0
    assert str(machine.requests[0].url) == f"{LOCAL}/v1/projects/p/submit_events"
    token = machine.requests[0].headers["authorization"].removeprefix("Bearer ")
    assert jwt.decode(token, SECRET, ["HS256"], audience="millrace")["projects"] == ["p"]


@pytest.mark.usefixtures("local_hub")
def test_a_hub_of_this_folder_and_another_server_are_told_apart_by_url_only(machine: Machine) -> None:
    for command in COMMANDS.values():
        assert machine.run(*command) == 2
        assert f"The server is {CONFIGURED}, but a hub runs in this folder too, {LOCAL}" in machine.said
    assert machine.requests == []
    assert machine.run("health", "--url", CONFIGURED) == 0
    assert machine.run("pull", "--project", "p", "--url", LOCAL) == 0, "and it gets a token of its own"
    assert machine.run("pull", "--project", "p", "--url", CONFIGURED) == 2, "which no other hub gets"
    machine.configure(f'[sync]\nserver_url = "{LOCAL}"\n')
    assert machine.run("pull", "--project", "p") == 0


@pytest.mark.usefixtures("local_hub")
def test_a_stack_file_that_was_left_behind_is_no_other_server(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_stack, "answers", lambda _: False)
    assert machine.run("health") == 0
    assert machine.reached == {CONFIGURED}


@pytest.mark.parametrize("address", ["nowhere", 1, None])
@pytest.mark.usefixtures("local_hub")
def test_a_stack_file_with_an_address_that_is_none_is_told_in_one_line(machine: Machine, address: object) -> None:
    file = machine.home.parent / ".local" / "stack.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"http_url": address}))
    machine.configure("")
    assert machine.run("health") == 2
    assert "stack.json cannot be read" in machine.said


def test_follow_asks_the_hub_that_is_resolved_where_its_websocket_is(machine: Machine) -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.commit("a")
            machine.answer["websocket_url"] = hub.url
            assert await asyncio.to_thread(machine.run, *COMMANDS["follow"]) == 0
            assert hub.payloads("connect")[0]["token"] == TOKEN
            assert machine.reached == {CONFIGURED}
            assert "authorization" not in machine.requests[0].headers
            machine.environment["MILLRACE_WS_URL"] = "wss://elsewhere.example"
            assert await asyncio.to_thread(machine.run, *COMMANDS["follow"]) == 2
            assert f"MILLRACE_WS_URL is wss://elsewhere.example, but the WebSocket of {CONFIGURED} is" in machine.said
            assert await asyncio.to_thread(machine.run, *COMMANDS["follow"], "--ws-url", hub.url) == 0
            machine.environment["MILLRACE_WS_URL"] = f"{hub.url}/"
            assert await asyncio.to_thread(machine.run, *COMMANDS["follow"]) == 0

    asyncio.run(test())


def test_a_hub_that_does_not_say_where_its_websocket_is_has_it_named(machine: Machine) -> None:
    assert machine.run(*COMMANDS["follow"]) == 2
    assert "name it with --ws-url" in machine.said
