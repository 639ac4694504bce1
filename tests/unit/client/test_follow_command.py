"""`millrace follow` against a hub on a loopback port; and the client's README, which runs as printed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from millrace_client import local_stack
from millrace_client.commands import cli
from millrace_client.tokens import Grant, sign
from tests.unit.client.fake_hub import FakeHub

README = Path(__file__).parents[3] / "clients" / "python" / "README.md"
SECRET = "0" * 32
TOKEN = sign(Grant("C1", ["demo"]), SECRET)
MAIN = "import signal, sys; from millrace_client.commands.cli import main; \
signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(main())"
"""As a shell starts it: tests that run side by side ignore Ctrl-C, and so would whom they start."""


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("MILLRACE_WS_URL", "MILLRACE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(test: Coroutine[Any, Any, None]) -> None:
    async def timed() -> None:
        async with asyncio.timeout(30):
            await test

    asyncio.run(timed())


async def millrace(*arguments: str) -> int:
    return await asyncio.to_thread(cli.main, ["follow", "--project", "demo", *arguments])


def test_it_prints_a_line_an_event_and_its_state_beside_them(capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            for name in ("a", "b", "[bold]"):
                hub.commit("a", event_id=name)
            assert await millrace("--ws-url", hub.url, "--token", TOKEN, "--count", "3") == 0
            assert hub.payloads("connect")[0] == {"token": TOKEN, "client_id": "C1", "project": "demo"}

    run(test())
    printed = capsys.readouterr()
    assert [line.split()[0] for line in printed.out.splitlines()] == ["1", "2", "3"]
    assert '{"n": 3}' in printed.out
    assert "[bold]" in printed.out
    assert "connected: ws://" in printed.err
    assert "Stopped after position 3." in printed.err


def test_json_is_one_event_a_line_and_a_store_goes_on_where_it_ended(capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            for partition in "abaab":
                hub.commit(partition)
            common = ("--ws-url", hub.url, "--token", TOKEN, "--json", "--store", "s.db", "--partition", "a")
            assert await millrace(*common, "--count", "2") == 0
            assert await millrace(*common, "--count", "1") == 0

    run(test())
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["committed_id"] for line in lines] == [1, 3, 4]


def test_a_store_that_is_ahead_is_an_error_that_resync_cures(capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.commit("a")
            common = ("--ws-url", hub.url, "--token", TOKEN, "--store", "s.db", "--count", "1", "--since", "7")
            assert await millrace(*common) == 1
            assert await millrace(*common, "--resync") == 0

    run(test())
    assert "newest position is 1" in capsys.readouterr().err


def test_the_hub_of_this_folder_is_found_and_its_token_made(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local_stack, "secret_of", lambda *_: SECRET)
    monkeypatch.setattr(local_stack, "answers", lambda _: True)

    async def test() -> None:
        async with FakeHub() as hub:
            hub.commit("a")
            stack = {"http_url": "http://h", "endpoint_url": "http://e", "region": "r", "secret_arn": "s"}
            (nowhere / ".local").mkdir()
            (nowhere / ".local" / "stack.json").write_text(json.dumps(stack | {"websocket_url": hub.url}))
            assert await millrace("--count", "1") == 0
            assert hub.payloads("connect")[0]["client_id"] == "millrace-cli"
            assert await millrace("--ws-url", "ws://elsewhere", "--count", "1") == 2

    run(test())
    assert "A token for ws://elsewhere is missing" in capsys.readouterr().err


def test_without_a_hub_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["follow", "--project", "demo"]) == 2
    assert "--url" in capsys.readouterr().err


def test_ctrl_c_ends_it_cleanly() -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.commit("a")
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                MAIN,
                "follow",
                "--project",
                "demo",
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=os.environ | {"MILLRACE_WS_URL": hub.url, "MILLRACE_TOKEN": TOKEN},
            )
            assert process.stdout is not None
            assert (await process.stdout.readline()).strip().startswith(b"1")
            process.send_signal(signal.SIGINT)
            _, errors = await process.communicate()
            assert process.returncode == 0
            assert b"Stopped after position 1." in errors
            assert b"Traceback" not in errors
            await hub.hears("disconnect", 1)

    run(test())


def test_the_readme_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    found = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    examples = [example for example in found if "def main(" in example]
    assert len(examples) == 2

    async def test() -> None:
        for example in examples:
            names: dict[str, Any] = {}
            exec(compile(example, str(README), "exec"), names)
            async with FakeHub() as hub:
                await names["main"](hub.url, TOKEN)

    run(test())
    assert capsys.readouterr().out.splitlines() == ["committed 1", "1 order-17-paid", "paid: 1"]
