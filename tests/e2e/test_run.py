"""The doors around the hub: `make run`, `make stop`, `make demo`, the greeting, and the command line against a hub."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.stub import Stubber
from rich.console import Console

from local import cloud, demo, greeting, logs, saves, status
from local.deploy import DeployFailed, deploy
from local.emulator import HOST, free_port, port_is_free
from local.errors import LocalError
from local.stack import ROOT
from millrace_client.commands import cli
from millrace_client.local_stack import secret_of
from millrace_client.sync.http import Client
from millrace_client.tokens import Grant, sign
from tests.e2e.conftest import Hub
from tests.support.shell import paste

SECONDS = 60


def local(module: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"local.{module}", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen in {SECONDS} s"
        time.sleep(0.05)


def processes() -> dict[int, int]:
    """Every living process and its parent."""
    listing = subprocess.run(["ps", "-eo", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listing.splitlines()]
    return {int(pid): int(parent) for pid, parent, state in rows if not state.startswith("Z")}


def descendants(ancestor: int) -> set[int]:
    parents, found = processes(), {ancestor}
    while new := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= new
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".local"


def started(home: Path, *options: str, port: int | None = None) -> subprocess.Popen[str]:
    """A run that got as far as its stack file, or that ended before."""
    command = [sys.executable, "-m", "local.run", "--home", str(home), "--port", str(port or free_port()), *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_for(lambda: (home / "stack.json").exists() or process.poll() is not None, "stack.json")
    return process


@pytest.fixture
def running(home: Path) -> Iterator[subprocess.Popen[str]]:
    with run(home) as process:
        yield process


@contextmanager
def run(home: Path, *options: str, port: int | None = None) -> Iterator[subprocess.Popen[str]]:
    process = started(home, *options, port=port)
    if process.poll() is not None:
        output, _ = process.communicate()
        assert "is in use" in output
        # Another test run took the port between our choice and our start.
        process = started(home, *options, port=port)
    try:
        assert process.poll() is None, process.stdout and process.stdout.read()
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


def test_a_running_stack_is_healthy_says_so_when_started_again_and_stops_without_leaving_a_process(
    home: Path, running: subprocess.Popen[str]
) -> None:
    stack = json.loads((home / "stack.json").read_text())
    assert httpx.get(f"{stack['http_url']}/health").json()["status"] == "ok"
    family = descendants(running.pid)
    assert len(family) >= 3, "the emulator and at least one function"

    port = stack["endpoint_url"].rsplit(":", 1)[1]
    for asked, code in ((port, 0), ("4999", 1)):
        again = local("run", "--home", home, "--port", asked)
        assert again.returncode == code
        assert f"already running at {stack['http_url']}" in again.stdout

    stopped = local("stop", "--home", home)
    assert stopped.returncode == 0
    assert stopped.stdout.startswith("Stopped the embedded stack; what it stored is gone.")
    assert "KEEP=1" in stopped.stdout
    output, _ = running.communicate(timeout=SECONDS)
    assert running.returncode == 0
    assert "Traceback" not in output
    assert not family & processes().keys()
    assert not (home / "stack.json").exists()
    assert not (home / "state").exists()
    assert port_is_free(int(stack["endpoint_url"].rsplit(":", 1)[1]))


def contents(stack: dict[str, Any]) -> dict[str, Any]:
    """What a client of the hub can tell from what it knew before: its secret, its events, its objects."""
    where = cloud.at(stack["endpoint_url"])
    secret = secret_of(stack["endpoint_url"], stack["region"], stack["secret_arn"])
    with Client(stack["http_url"], sign(Grant("C1", ["kept"]), secret)) as hub:
        events = [event for page in hub.pages("kept", ["a"]) for event in page["events"]]
    objects = where.s3.list_objects_v2(Bucket=stack["archive_bucket"]).get("Contents", [])
    return {"secret": secret, "events": events, "objects": {one["Key"]: one["ETag"] for one in objects}}


def submit(stack: dict[str, Any], name: str) -> None:
    secret = secret_of(stack["endpoint_url"], stack["region"], stack["secret_arn"])
    with Client(stack["http_url"], sign(Grant("C1", ["kept"]), secret)) as hub:
        event = {"id": name, "partitions": ["a"], "event": {"type": "note", "payload": name}}
        [result] = hub.submit("kept", [event])
    assert result["status"] == "committed"


def archived(stack: dict[str, Any]) -> int:
    return len(contents(stack)["objects"])


def test_what_is_kept_survives_a_stop_and_the_death_of_the_emulator_is_told_at_once(home: Path) -> None:
    with run(home, "--keep", "1") as first:
        before = json.loads((home / "stack.json").read_text())
        assert home.stat().st_mode & 0o077 == 0, "what it keeps has secrets"
        submit(before, "first")
        wait_for(lambda: archived(before) == 1, "the first object")
        known = contents(before)
        family = descendants(first.pid)
        first.send_signal(signal.SIGINT)
        output, _ = first.communicate(timeout=SECONDS)
        assert first.returncode == 0
        assert "Stopped; its data is kept." in output
        assert "Traceback" not in output
        assert not family & processes().keys()

    with run(home, "--keep", "1", port=int(before["endpoint_url"].rsplit(":", 1)[1])) as second:
        after = json.loads((home / "stack.json").read_text())
        new = {"pid", "since"}
        assert {name: after[name] for name in after.keys() - new} == {
            name: before[name] for name in before.keys() - new
        }
        assert contents(after) == known
        submit(after, "second")
        assert [event["committed_id"] for event in contents(after)["events"]] == [1, 2]
        wait_for(lambda: archived(after) == 2, "an object by the stream's reader, which starts anew")
        family = descendants(second.pid)
        [emulator] = {pid for pid, parent in processes().items() if parent == second.pid}
        os.kill(emulator, signal.SIGKILL)
        output, _ = second.communicate(timeout=10)
    assert second.returncode == 1
    assert "The emulator has died (killed by SIGKILL)" in output
    assert "what was accepted after that is lost" in output
    assert "Traceback" not in output
    assert not family & processes().keys()
    assert not (home / "stack.json").exists()
    assert saves.newest(home) is not None


def test_a_killed_run_takes_the_emulator_and_its_functions_with_it(home: Path, running: subprocess.Popen[str]) -> None:
    family = descendants(running.pid)
    running.kill()
    wait_for(lambda: not family & processes().keys(), "the end of every process")
    assert (home / "stack.json").exists()
    left = local("status", "--home", home)
    assert left.returncode == 1
    assert "stack.json was left behind" in left.stdout
    assert local("stop", "--home", home).stdout.startswith("Nothing to stop")


def test_a_busy_port_is_named_together_with_the_way_out(home: Path) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((HOST, free_port()))
        other.listen()
        port = other.getsockname()[1]
        result = local("run", "--home", home, "--port", str(port))
    assert result.returncode == 1
    assert f"Port {port} is in use" in result.stderr
    assert "make run PORT=4600" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (home / "stack.json").exists()


def test_a_failed_deployment_names_the_resources_that_failed(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text("Resources: {}")
    where = cloud.at("http://127.0.0.1:1")
    stack = {"StackName": "x", "CreationTime": 0, "StackStatus": "ROLLBACK_COMPLETE"}
    event = {"StackId": "s", "EventId": "e", "StackName": "x", "Timestamp": 0, "ResourceType": "T"}
    events = [
        event | {"LogicalResourceId": "Bad", "ResourceStatus": "CREATE_FAILED", "ResourceStatusReason": "because"},
        event | {"LogicalResourceId": "Good", "ResourceStatus": "CREATE_COMPLETE"},
    ]
    with Stubber(where.cloudformation) as aws, Stubber(where.s3) as s3:
        s3.add_response("create_bucket", {})
        aws.add_client_error("describe_stacks", "ValidationError")
        aws.add_response("create_stack", {})
        aws.add_response("describe_stacks", {"Stacks": [stack]})
        aws.add_response("describe_stack_events", {"StackEvents": events})
        with pytest.raises(DeployFailed) as failure:
            deploy(where, tmp_path / "template.yaml", "x")
    assert str(failure.value) == "The stack x could not be deployed:\n  Bad (T): because"


def test_stop_says_when_nothing_runs(home: Path) -> None:
    result = local("stop", "--home", home)
    assert (result.returncode, result.stdout) == (0, "Nothing to stop: the embedded stack is not running.\n")


def test_make_alone_lists_every_target() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    listing = subprocess.run(["make"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    targets = set(re.findall(r"^\.PHONY: (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets >= {"run", "stop", "test", "lint", "bench", "demo", "build", "deploy", "soak", "token", "clean"}
    assert set(re.findall(r"^  (\S+) ", listing, re.MULTILINE)) == targets


def test_the_demo_tells_the_truth(stack: Hub) -> None:
    demo.show(stack.stack, Console(quiet=True))


def test_the_commands_of_the_greeting_work_as_pasted(stack: Hub, tmp_path: Path) -> None:
    result = paste("\necho\n".join(greeting.commands(stack.stack)), tmp_path)
    assert result.returncode == 0, result.stderr
    submitted, read = (json.loads(line) for line in result.stdout.splitlines() if line.startswith("{"))
    assert submitted["results"][0]["status"] == "committed"
    assert "first" in [event["id"] for event in read["events"]]


def test_the_command_line_finds_the_local_hub_mints_a_token_and_reads_back_what_it_submitted(
    stack: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.stack.write(tmp_path / ".local")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MILLRACE_URL", raising=False)
    monkeypatch.delenv("MILLRACE_TOKEN", raising=False)
    events = tmp_path / "events.ndjson"
    lines = [json.dumps({"id": f"e{number}", "type": "note", "payload": number}) for number in range(120)]
    events.write_text("\n".join(lines))

    assert cli.main(["submit", "--project", "cli", "--partition", "a", "--file", str(events), "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert [result["committed_id"] for result in results] == list(range(1, 121))

    assert cli.main(["token", "--client", "C2", "--project", "cli", "--partition", "a"]) == 0
    token = capsys.readouterr().out.strip()
    reading = ["pull", "--project", "cli", "--partition", "a", "--limit", "50", "--all", "--json", "--token", token]
    assert cli.main(reading) == 0
    read = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"]["payload"] for event in read] == list(range(120))

    assert cli.main(["health"]) == 0
    assert "status: ok" in capsys.readouterr().out

    seen = status.status_of(tmp_path / ".local")
    assert (seen.running, seen.healthy, seen.http_url, seen.keeps_data) == (True, True, stack.http_url, False)
    active = {function.name for function in seen.functions if function.last_active}
    assert active >= {"submit", "sync", "meta"}
    assert {function.name for function in seen.functions} >= {folder.name for folder in (ROOT / "functions").glob("*/")}
    status.show(seen, Console(quiet=True))

    lines = logs.lines_of(stack.stack, "submit", 5)
    assert 0 < len(lines) <= 5
    assert all(" submit " in line for line in lines)
    assert {line.split()[1] for line in logs.lines_of(stack.stack, None, 1000)} >= {"submit", "sync", "meta"}
    with pytest.raises(LocalError, match="FUNCTION is one of: archive, catalog"):
        logs.lines_of(stack.stack, "nothing", 5)
