"""A stack file that was left behind is recognised by everybody who reads it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from glue_jobs.retain import job
from glue_jobs.store import open_store
from local import logs, stack, status, stop
from local.stack import Stack
from millrace.ledger.domain.errors import BadRequest
from millrace_client.commands import cli

NOBODY = "http://127.0.0.1:9"


@contextmanager
def listening() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def a_stack(endpoint_url: str, pid: int | None = None) -> Stack:
    tables = {name: name for name in ("log", "state", "delivery")}
    return Stack(endpoint_url, endpoint_url, "us-east-1", "x", "arn", "ws://x", "bucket", tables, pid=pid)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("MILLRACE_URL", "MILLRACE_TOKEN", "MILLRACE_WS_URL", "MILLRACE_STACK", "MILLRACE_STORE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / ".local"


def gone() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_a_stack_that_runs_is_read(home: Path) -> None:
    assert stack.read(home) is None
    with listening() as url:
        a_stack(url, os.getpid()).write(home)
        assert stack.read(home) == a_stack(url, os.getpid())
        assert stack.required(home) == stack.living(home) == stack.read(home)


def test_one_that_has_ended_is_not(home: Path) -> None:
    a_stack(NOBODY, os.getpid()).write(home)
    with pytest.raises(stack.LeftBehind, match=f"nothing answers at {NOBODY}.*make run"):
        stack.read(home)
    with listening() as url:
        a_stack(url, pid := gone()).write(home)
        with pytest.raises(stack.LeftBehind, match=f"process {pid} has ended.*make run"):
            stack.read(home)
    assert stack.living(home) is None


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"http_url": 1, "colour": "blue"}'])
def test_a_file_of_another_kind_is_left_behind_too(home: Path, content: str) -> None:
    home.mkdir()
    (home / "stack.json").write_text(content)
    with pytest.raises(stack.LeftBehind, match="make run"):
        stack.read(home)


COMMANDS = [
    ["health"],
    ["token", "--client", "c", "--project", "p", "--partition", "*"],
    ["pull", "--project", "p", "--partition", "a"],
    ["submit", "--project", "p", "--partition", "a", "--type", "t", "--payload", "{}"],
    ["follow", "--project", "p", "--partition", "a"],
    ["archive", "verify"],
    ["retain"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_says_so(home: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    a_stack(NOBODY).write(home)
    assert cli.main(command) == 2
    assert f"was left behind: nothing answers at {NOBODY}" in " ".join(capsys.readouterr().err.split())


def test_the_jobs_say_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_stack(NOBODY).write(home)
    with pytest.raises(BadRequest, match="left behind"):
        open_store(None)
    assert job.main([]) == 1
    assert "left behind" in capsys.readouterr().err


def test_status_and_logs_say_so_and_stop_has_nothing_to_stop(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_stack(NOBODY).write(home)
    assert status.main(["--home", str(home), "--json"]) == 1
    seen = json.loads(capsys.readouterr().out)
    assert seen["running"] is False
    assert "left behind" in seen["note"]
    assert logs.main(["--home", str(home)]) == 1
    assert "left behind" in capsys.readouterr().err
    assert stop.main(["--home", str(home)]) == 0
    assert "Nothing to stop" in capsys.readouterr().out


def test_without_a_file_nothing_runs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status.main(["--home", str(home)]) == 1
    assert "make run" in capsys.readouterr().out
    assert logs.main(["--home", str(home)]) == 1
    assert "make run" in capsys.readouterr().err
