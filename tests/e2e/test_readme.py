"""The README's shell blocks run as printed, in order, in one shell, beside a running hub."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Hub
from tests.support.shell import paste

ROOT = Path(__file__).parents[2]


PAGES = ["README.md", "docs/streams.md", "docs/privacy.md"]


def blocks(page: str = "README.md", language: str = "bash") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def test_the_readmes_commands_do_what_it_says(stack: Hub, tmp_path: Path) -> None:
    stack.stack.write(tmp_path / ".local")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    run = paste("\n".join(blocks()), tmp_path)
    assert run.returncode == 0, run.stderr
    answers = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    first, again, other = (answer["results"][0] for answer in answers[:3])
    assert first == again
    assert first["status"] == "committed"
    assert (other["status"], other["reason"]) == ("rejected", "validation_failed")
    page = answers[3]
    orders = [event["id"] for event in page["events"]]
    assert [one for one in orders if not one.startswith("demo-order-")] == ["order-17-paid"]  # `make demo` has its own
    assert "order-17-shipped" in run.stdout


def test_the_commands_of_streams_and_privacy_do_what_the_pages_say(stack: Hub, tmp_path: Path) -> None:
    stack.stack.write(tmp_path / ".local")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    settings = [line for line in blocks()[0].splitlines() if line.startswith(("URL=", "TOKEN="))]
    run = paste("\n".join([*settings, *blocks("docs/streams.md"), *blocks("docs/privacy.md")]), tmp_path)
    assert run.returncode == 0, run.stderr
    answers = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    agreed, effective, emitted, polled, status, made, moved, listed, deleted, told, grant, grants, audit = answers
    assert agreed["effective_limits"]["max_poll_events"] == 32
    assert effective == agreed
    assert emitted == {"event_id": "e-1", "seq_no": 1, "deduped": False}
    assert polled["events"][0]["peer_id"].startswith("hmac:")
    assert polled["events"][0]["payload"] == {"bytes": 120}
    assert status["streams"][0]["projection"]["events"] == 1
    assert [made["marker"]["revision"], moved["marker"]["revision"], deleted["revision"]] == [1, 2, 3]
    assert [marker["marker_id"] for marker in listed["markers"]] == ["camp"]
    assert [event["event_id"] for event in told["events"]] == ["marker-camp-1", "marker-camp-2", "marker-camp-3"]
    assert grant["status"] == "active"
    assert [one["grant_id"] for one in grants["grants"]] == [grant["grant_id"]]
    assert {"negotiated", "grant_made"} & {one["action"] for one in audit["events"]}
    assert ("grant_made", grant["grant_id"]) in rows_of_the_audit(stack)
    assert "never stored" not in run.stdout


def rows_of_the_audit(stack: Hub) -> list[tuple[str, str | None]]:
    """All of them: in this tenant other tests negotiate too, so one page may not hold the last."""
    headers, after, rows = stack.headers(roles=["operator"], partitions=["*"]), 0, list[tuple[str, str | None]]()
    while True:
        page = stack.http.get("/v1/audit", params={"after": after, "max": 500}, headers=headers).json()
        if not page["events"]:
            return rows
        rows += [(one["action"], one.get("grant_id")) for one in page["events"]]
        after = page["next_after"]


def test_the_clients_http_example_runs(stack: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    (source,) = (block for block in blocks("clients/python/README.md", "python") if "def sync(" in block)
    scope: dict[str, Any] = {}
    exec(source, scope)  # the page's own example
    scope["sync"](stack.http_url, stack.token(projects=["demo"], partitions=["*"]))
    status, *events = capsys.readouterr().out.splitlines()
    assert status.startswith("committed ")
    assert events == ["order-16-placed"]


def test_the_clients_stream_example_runs(stack: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    (source,) = (block for block in blocks("clients/python/README.md", "python") if "def stream(" in block)
    scope: dict[str, Any] = {}
    exec(source, scope)  # the page's own example
    asyncio.run(scope["stream"](stack.http_url, stack.token(partitions=["*"])))
    printed = capsys.readouterr().out.splitlines()
    assert printed == ["emitted 1", "1 RuntimeStateChanged", "camp is at revision 2"]


@pytest.mark.parametrize(
    "page", [*PAGES, "clients/python/README.md", "clients/operator/README.md", "docs/contracts.md", "docs/errors.md"]
)
def test_every_file_a_page_links_to_exists(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text())
    assert links
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []
