"""The examples of docs/delivery-hub.md do what it says."""

from __future__ import annotations

import base64
import gzip
import json
import re
import time
from pathlib import Path

import pytest

from millrace.delivery.domain.hub_targets import FIELDS
from millrace.delivery.domain.signing import headers as signed_headers
from millrace_client.commands import cli
from tests.e2e.conftest import Hub
from tests.support.shell import paste

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "delivery-hub.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_commands_do_what_the_page_says(stack: Hub, tmp_path: Path) -> None:
    stack.stack.write(tmp_path / ".local")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    run = paste("\n".join(blocks("bash")), tmp_path)
    assert run.returncode == 0, run.stderr
    batch, made, seen, paused, resumed, listed, status, asked = map(json.loads, run.stdout.splitlines())
    assert [(one["event_id"], one["status"]) for one in batch["results"]] == [
        ("build-17", "success"),
        ("build-18", "rejected"),
    ]
    assert made == seen
    assert (paused["paused"], resumed["paused"], resumed["families"]) == (True, False, ["build."])
    assert listed.keys() == {"deliveries", "next_after"}
    assert status["delivery_targets"][0]["target_id"] == "archive"
    assert asked == {"asked": True}
    stack.http.delete("/v1/targets/archive", headers=stack.headers(roles=["operator"])).raise_for_status()


def test_what_is_captured_goes_to_a_hub_of_ones_own_as_the_page_says(stack: Hub, tmp_path: Path) -> None:
    """D1, D2: docs/delivery.md, "Try it": capture, a token of the team, and the drain that delivers once."""
    stack.stack.write(tmp_path / ".local")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    page = (ROOT / "docs" / "delivery.md").read_text()
    script, _ = re.findall(r"^```bash\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    run = paste(f"{script}\ncat $MILLRACE_HOME/config.toml", tmp_path)
    assert run.returncode == 0, run.stderr
    assert re.findall(r"^teamspace-\w+: (.*)$", run.stdout, re.MULTILINE) == ["1 success.", "nothing was due."]
    assert f"Server: {stack.http_url} (none)" in run.stdout
    event = {"event_id": "order-17-paid", "event_type": "order.paid", "payload": {"order": 17}}
    headers = stack.headers(team_slug="acme", partitions=["team:acme"])
    again = stack.http.post("/api/v1/events/batch/", json={"events": [event]}, headers=headers).json()
    assert [one["status"] for one in again["results"]] == ["duplicate"], "it is in the journal of the team"


def test_follow_is_told_by_the_hub_where_its_websocket_is(
    stack: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """D1: one server for every command; no stack file is near."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPEC_KITTY_SAAS_URL", stack.http_url)
    assert stack.http.get("/health").json()["websocket_url"] == stack.ws_url
    common = ["--project", "one-server", "--token", stack.token(projects=["one-server"])]
    assert cli.main(["submit", *common, "--partition", "a", "--type", "note", "--payload", "1", "--id", "e1"]) == 0
    assert cli.main(["follow", *common, "--count", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["id"] == "e1"
    assert cli.main(["pull", *common, "--since", "5"]) == 1
    assert "newest position is 1" in capsys.readouterr().err


def test_the_receivers_example_accepts_what_we_sign() -> None:
    [script] = blocks("python")
    names: dict[str, object] = {}
    exec(compile(script, "received", "exec"), names)
    received = names["received"]
    assert callable(received)
    secret, body = "whsec_" + base64.b64encode(b"x" * 32).decode(), b'{"events":[]}'
    signed = signed_headers("m1", int(time.time()), body, [secret])
    assert received(secret, signed, body) == {"events": []}
    assert received(secret, {**signed, "content-encoding": "gzip"}, gzip.compress(body)) == {"events": []}


def test_every_field_of_a_target_is_explained() -> None:
    assert {name for name in FIELDS if f"| `{name}` |" not in PAGE} == set()
