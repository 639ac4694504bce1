"""The examples of docs/delivery.md do what it says."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from millrace.delivery.domain import retry
from millrace.delivery.domain.signing import headers, new_secret
from millrace.delivery.domain.targets import Blocked
from millrace.delivery.receivers.registry import RECEIVERS
from millrace_client.journal.config import load
from tests.support.shell import paste

ROOT = Path(__file__).parents[3]
DOC = ROOT / "docs" / "delivery.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", DOC.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_commands_that_need_no_hub_do_what_the_page_says(tmp_path: Path) -> None:
    """Those that need one are run beside one, by the tests of a whole hub."""
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    _, script = blocks("bash")
    run = paste(script, tmp_path)
    assert run.returncode == 0, run.stderr
    assert "demo: 1 success." in run.stdout


@pytest.mark.parametrize("number", [0, 1])
def test_whoever_pastes_the_commands_into_an_empty_folder_is_told_what_is_missing(number: int, tmp_path: Path) -> None:
    """As a shell at a prompt does, which goes on after an error; none of the lines waits for what never comes."""
    run = paste("set +e\n" + blocks("bash")[number], tmp_path, timeout=60)
    assert run.returncode != 0
    assert ".venv/bin/millrace: No such file or directory" in run.stderr


def test_the_configuration_can_be_read(tmp_path: Path) -> None:
    [text] = blocks("toml")
    (tmp_path / "config.toml").write_text(text)
    secret = new_secret(b"x" * 32)
    environment = {"AUDIT_SECRET": secret, "CHAT_SECRET": secret, "CHAT_AUTHORIZATION": "Bearer x"}
    config = load(tmp_path, environment)
    assert [(one.id, one.kind, one.webhook) for one in config.targets] == [
        ("audit", "external", False),
        ("chat", "external", True),
        ("ci", "stub", False),
    ]


def test_the_python_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    capture, verify, dispatch = blocks("python")
    exec(compile(capture, "capture", "exec"), {})
    assert capsys.readouterr().out == "cart-9-a\n"
    names: dict[str, object] = {}
    exec(compile(verify, "verify", "exec"), names)
    secret, body = new_secret(b"x" * 32), b'{"event_id":"e1"}'
    received = names["received"]
    assert callable(received)
    assert received(body, headers("e1", int(time.time()), body, [secret]), secret) == {"event_id": "e1"}
    exec(compile(dispatch, "dispatch", "exec"), {})
    assert "['e1']" in capsys.readouterr().out


def test_the_tables_name_every_reason_and_the_schedule_in_force() -> None:
    text = DOC.read_text()
    assert [reason for reason in Blocked if f"| `{reason}` |" not in text] == []
    schedule = retry.Schedule()
    assert (schedule.pending.first_ms, schedule.pending.longest_ms, schedule.pending.most) == (30_000, retry.HOUR, 200)
    assert (schedule.rejected.first_ms, schedule.rejected.longest_ms, schedule.rejected.most) == (
        60_000,
        6 * retry.HOUR,
        12,
    )
    assert (schedule.transient.first_ms, schedule.transient.longest_ms, schedule.transient.most) == (
        5_000,
        retry.HOUR,
        200,
    )


def test_the_table_of_types_is_the_registry() -> None:
    table = DOC.read_text().partition("| type |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(RECEIVERS)


def test_every_link_of_the_page_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", DOC.read_text())
    assert links
    assert [link for link in links if not (DOC.parent / link).exists()] == []
