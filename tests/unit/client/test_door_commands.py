"""The commands of the operator's doors, against recorded answers: what they ask, and what 80 columns show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from millrace_client.commands import cli, output
from millrace_client.commands.connection import World
from millrace_client.commands.console import console_address
from millrace_client.commands.target_settings import source_of
from millrace_client.errors import Usage
from tests.support.commands import commands, examples

URL = "https://hub.example"
WIDTH = 80
LAG = {"position": 118, "lag_events": 2, "lag_seconds": 3.2}
LEDGER = {
    "contract": "sync",
    "scope": "demo",
    "head": 120,
    "floor": 1,
    "events": 120,
    "last_commit_ms": 1770000000000,
    "stages": {"index": {**LAG, "lag_events": 0}, "fan_out": LAG, "archive": {**LAG, "lag_events": 20}},
    "targets": [{"target_id": "archive-hub", **LAG}],
}
EVENT = {
    "position": 17,
    "id": "order-17-paid",
    "committed_ms": 1770000000000,
    "type": "order.paid",
    "bytes": 212,
    "partitions": ["orders"],
    "by": {"client_id": "C1"},
    "pruned": False,
    "content": {"event": {"type": "order.paid", "payload": {"order": 17, "note": "long " * 40}}},
}
TARGET = {
    "target_id": "archive",
    "type": "stub",
    "url": None,
    "mode": "batch",
    "revision": 3,
    "paused": False,
    "sources": [{"contract": "sync", "scope": "demo"}],
}
DELIVERY = {
    "event_id": "sync:demo:order-17-paid",
    "event_type": "order.paid",
    "contract": "sync",
    "scope": "demo",
    "position": 17,
    "status": "transient",
    "attempts": 2,
    "first_ms": 1,
    "last_ms": 1771000009000,
    "next_ms": None,
    "error": "answered 503: busy, and this is a long story that does not fit into the rest of a line",
}
HISTORY = [{"at_ms": 1771000000000, "status": "transient", "answer": 500, "error": "answered 500"}]
RULE = {
    "contract": "sync",
    "scope": "demo",
    "partition": None,
    "advance_to": 0,
    "max_age_days": 90,
    "max_events": None,
}
PLAN = {
    "floor": 1,
    "head": 900,
    "held_by": "target:archive",
    "limit": 350,
    "events": 350,
    "bytes": 70000,
    "holders": {"archive": 400, "target:archive": 350},
    "goes": [[1, 350]],
    "complete": False,
    "not_asked": ["compaction"],
}
GRANT = {
    "grant_id": "64a72dc4c891ea825376589b6fa1060e",
    "runtime_id": "pi-7",
    "who": "ops",
    "reason": "ticket 4711",
    "scope": {},
    "created_ts_ms": 1,
    "expires_ts_ms": 1770000000000,
    "status": "active",
}
AUDIT = {
    "position": 8,
    "ts_ms": 1770000000040,
    "who": "ops",
    "action": "target_put",
    "action_id": "9f",
    "outcome": "done",
    "target_id": "archive-hub",
}
OVERVIEW = {
    "looked_at": 40,
    "more": False,
    "connections": 3,
    "subscriptions": 5,
    "degraded": 0,
    "stages": {"fan_out": {"worst_lag_seconds": 3.2, "lag_events": 2, "ledgers_behind": 1, "gaps": 0}},
    "events_per_minute": {"minutes": [{"minute_ms": 1770000000000, "events": 12}], "truncated": False},
    "targets": {"well": 2, "paused": 1, "blocked": 0},
    "problems": [{"severity": "warning", "what": "fan_out is 90 s behind.", "where": "sync/demo", "help": "make logs"}],
}
CONNECTION = {
    "connection": "abc=",
    "client_id": "C1",
    "project": "demo",
    "subscriptions": [{"subscription_id": "sync", "contract": "sync", "scope": "demo"}],
}
STATUS = {
    "target_id": "archive",
    "delivered_count": 9,
    "has_due": False,
    "due": [],
    "stuck": None,
    "paused": True,
    "paused_why": "by an operator",
    "drain": None,
    "blocked": None,
    "waits_since_ms": None,
    "deliveries": {"pending": 3, "rejected": 0, "transient": 0, "terminal_failed": 12},
}
ENTRY = {
    "id": "9c" * 16,
    "reason": "unknown_version",
    "field": "event_version",
    "contract": "catalog",
    "scope": "orders",
    "position": 17,
    "event_type": "order.placed",
    "event_version": 7,
    "idempotency_key": "orders/17",
    "bytes": 312,
    "object": "ledger/01KJ00000000000000000000000000000000000000000000.jsonl.gz",
    "redriven": None,
}
TABLES = {
    "edition": 12,
    "run": "20260213T000000Z-0123",
    "published_ms": 1770000000000,
    "tables": [{"table": "transcripts", "rows": 1200000, "files": 3000, "bytes": 81000000000}],
    "runs": [
        {
            "edition": 12,
            "run": "20260213T000000Z-0123",
            "published_ms": 1770000000000,
            "counts": {"objects": 3, "lines": 120, "new": 118, "duplicates": 1, "quarantined": 1},
        },
        {"edition": 11, "run": "20260212T000000Z-0123", "published_ms": 1769000000000, "counts": None},
    ],
    "waiting": {"objects": 1000, "bytes": 12000, "oldest_ms": 1770000000000, "more": True},
    "quarantine": {"lines": 4, "objects": 0, "redriven": 1},
}
PUT = {"types": 1, "versions": 2, "policy": "quarantine"}
COUNTS = {"pending": 3, "rejected": 0, "transient": 0, "terminal_failed": 12}
PROFILE = {"project": "demo", "profile": "canonical", "set_by": "operator"}
ANSWERS: dict[tuple[str, str], Any] = {
    ("GET", "/v1/ledgers"): {"ledgers": [LEDGER], "next": None},
    ("GET", "/v1/ledgers/sync/demo"): LEDGER,
    ("GET", "/v1/ledgers/sync/demo/events"): {"events": [EVENT], "next_after": 17, "head": 17, "floor": 1},
    ("GET", "/v1/ledgers/sync/demo/event"): {
        "event": EVENT,
        "deliveries": [
            {
                "target_id": "archive-hub",
                "state": "delivered",
                "attempts": 1,
                "first_ms": 1,
                "last_ms": 1,
                "next_ms": None,
                "error": None,
            }
        ],
    },
    ("GET", "/v1/targets"): {"targets": [{**TARGET, "deliveries": COUNTS, "counts_complete": False}]},
    ("GET", "/v1/targets/archive"): TARGET,
    ("PATCH", "/v1/targets/archive"): TARGET,
    ("GET", "/v1/delivery/status"): {"delivery_targets": [STATUS]},
    ("POST", "/v1/targets/archive/pause"): TARGET,
    ("POST", "/v1/targets/archive/resume"): TARGET,
    ("POST", "/v1/targets/archive/retry"): {"matched": 12, "retried": 0, "next": None},
    ("DELETE", "/v1/targets/archive"): {"deleted": True},
    ("GET", "/v1/targets/archive/deliveries"): {"deliveries": [DELIVERY], "next_after": None},
    ("GET", "/v1/targets/archive/attempts"): {**DELIVERY, "target_id": "archive", "history": HISTORY},
    ("GET", "/v1/retention"): {"policies": [RULE], "next_after": None},
    ("PUT", "/v1/retention/sync/demo"): RULE,
    ("GET", "/v1/retention/sync/demo"): {**RULE, "partitions": [{**RULE, "partition": "legal"}]},
    ("GET", "/v1/retention/sync/demo/plan"): PLAN,
    ("GET", "/v1/tables"): TABLES,
    ("GET", "/v1/quarantine"): {"entries": [ENTRY], "complete": True, "next": None},
    ("GET", f"/v1/quarantine/{ENTRY['id']}"): {**ENTRY, "line": '{"committed_at": 1}'},
    ("POST", "/v1/quarantine/redrive"): {"redriven": {ENTRY["id"]: ENTRY["object"]}, "next": None},
    ("POST", f"/v1/quarantine/{ENTRY['id']}/repair"): {"redriven": {ENTRY["id"]: ENTRY["object"]}},
    ("GET", "/v1/registry"): {"registry": {"types": {}}, "policy": "quarantine", "types": 0, "versions": 0},
    ("PUT", "/v1/registry"): PUT,
    ("PUT", "/v1/projects/demo/profile"): PROFILE,
    ("GET", "/v1/projects/demo/profile"): PROFILE,
    ("GET", "/v1/profiles"): {"profiles": [PROFILE], "deployment": {"old": "open"}, "next_after": None},
    ("POST", "/v1/runtimes/pi-7/diagnostics/grants"): GRANT,
    ("GET", "/v1/runtimes/pi-7/diagnostics/grants"): {"grants": [GRANT]},
    ("GET", "/v1/audit"): {"events": [AUDIT], "next_before": 0},
    ("GET", "/v1/overview"): OVERVIEW,
    ("GET", "/v1/connections"): {"connections": [CONNECTION], "next": None},
    ("GET", "/v1/runtimes/pi-7/degraded"): {
        "degraded": [{"stream_id": "delivery", "subscription": "1f", "floor": 20}],
        "gaps": [{"stream_id": "delivery", "floor": 20, "head": 120}],
        "next": None,
    },
}
RECORDED = [
    *("ledgers", "deliveries", "audit", "overview", "connections", "degraded"),
    *("events", "targets", "retention", "profiles", "lake", "grants"),
]
OWN = dict(commands())
CALLS = [words for name in RECORDED for words in examples(OWN[name])]


class RecordedHub:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, request.url.raw_path.decode(), body))
        known = ANSWERS.get((request.method, request.url.path))
        if known is None:
            return httpx.Response(404, json={"code": "not_found", "message": f"{request.method} {request.url.path}"})
        return httpx.Response(200, json=known)

    def run(self, *arguments: str) -> int:
        world = World(httpx.MockTransport(self), lambda _: None)
        return cli.main([*arguments, "--url", URL, "--token", "T"], world)


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MILLRACE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(output.out, "_width", WIDTH)
    (tmp_path / "registry.json").write_text('{"types": {"order.placed": {"versions": {"1": {}}}}}')


@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_an_example_works_and_fits_into_80_columns(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    hub = RecordedHub()
    assert hub.run(*words) == 0, capsys.readouterr().err
    assert hub.asked
    printed = capsys.readouterr()
    assert printed.out or printed.err
    if words[1:2] != ["tail"]:
        assert max(map(len, printed.out.splitlines()), default=0) <= WIDTH


@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_with_json_every_line_is_json(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert RecordedHub().run(*words, "--json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines)


@pytest.mark.parametrize("name", OWN)
def test_every_command_has_an_example_in_its_help(name: str) -> None:
    assert examples(OWN[name])
    assert all(words[0] == name for words in examples(OWN[name]))


def test_a_table_shows_what_matters_at_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert RecordedHub().run("targets", "list") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "archive",
        "9",
        "3",
        "12",
        "paused:",
        "by",
        "an",
        "operator",
    ]


def test_a_line_of_the_audit_keeps_its_time_and_its_action_whole(capsys: pytest.CaptureFixture[str]) -> None:
    entry = {**AUDIT, "who": "millrace-cli", "action": "quarantine_redrive", "target_id": "a-target-with-a-long-name"}
    answer = httpx.Response(200, json={"events": [entry], "next_before": 0})
    world = World(httpx.MockTransport(lambda _: answer), lambda _: None)
    assert cli.main(["audit", "--url", URL, "--token", "T"], world) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lines[1].split()[:5] == ["2026-02-02", "02:40:00", "millrace-cli", "quarantine_redrive", "done"]


def test_a_redrive_of_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    empty = httpx.Response(200, json={"redriven": {}, "next": None})
    world = World(httpx.MockTransport(lambda _: empty), lambda _: None)
    assert cli.main(["lake", "redrive", "--reason", "x", "--url", URL, "--token", "T"], world) == 0
    assert capsys.readouterr().err == "Nothing waits for this reason.\n"


def test_what_is_wrong_is_said_with_what_helps(capsys: pytest.CaptureFixture[str]) -> None:
    assert RecordedHub().run("overview") == 0
    assert "warning: fan_out is 90 s behind.\n  try: make logs\n" in capsys.readouterr().out


def test_a_quarantined_line_is_shown_edited_and_repaired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hub, id_ = RecordedHub(), str(ENTRY["id"])
    assert hub.run("lake", "show", id_, "--line") == 0
    fixed = tmp_path / "fixed.jsonl"
    fixed.write_text(capsys.readouterr().out)
    assert hub.run("lake", "repair", id_, "--file", str(fixed)) == 0
    assert hub.asked[-1] == ("POST", f"/v1/quarantine/{id_}/repair", {"lines": [{"committed_at": 1}]})
    assert f"{id_} → {ENTRY['object']}" in capsys.readouterr().out.replace("\n", "")


@pytest.mark.parametrize("text", ["", "[]", "{", "1\n"])
def test_a_repair_that_is_no_object_a_line_is_never_sent(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub, file = RecordedHub(), tmp_path / "fixed.jsonl"
    file.write_text(text)
    assert hub.run("lake", "repair", "9c", "--file", str(file)) == 2
    assert "one JSON object a line" in capsys.readouterr().err
    assert hub.run("lake", "repair", "9c", "--file", str(tmp_path / "none")) == 2
    assert hub.asked == []


@pytest.mark.parametrize("words", [["redrive"], ["redrive", "9c", "--reason", "x"]])
def test_a_redrive_needs_ids_or_a_reason_and_not_both(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    hub = RecordedHub()
    assert hub.run("lake", *words) == 2
    assert "Name ids or a --reason" in capsys.readouterr().err
    assert hub.asked == []


@pytest.mark.parametrize("text", ["", "[1]", "{"])
def test_a_registry_that_is_no_object_is_never_sent(text: str, tmp_path: Path) -> None:
    hub = RecordedHub()
    (tmp_path / "registry.json").write_text(text)
    assert hub.run("lake", "put-registry", str(tmp_path / "registry.json")) == 2
    assert hub.asked == []


def test_a_refusal_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    refused = httpx.Response(403, json={"code": "forbidden", "message": "The token lacks the role operator."})
    world = World(httpx.MockTransport(lambda _: refused), lambda _: None)
    assert cli.main(["audit", "--url", URL, "--token", "T"], world) == 1
    assert "`millrace token --role operator" in capsys.readouterr().err


def test_errors_of_an_event_are_shown_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    errors = [{"pointer": "/payload/speaker", "message": "must be 'user' or 'agent'"}]
    refused = httpx.Response(400, json={"ok": False, "code": "INVALID", "message": "no", "errors": errors})
    world = World(httpx.MockTransport(lambda _: refused), lambda _: None)
    call = ["sessions", "publish", "s", "--type", "t", "--payload", "{}", "--url", URL, "--token", "T"]
    assert cli.main(call, world) == 1
    assert "/payload/speaker: must be 'user' or 'agent'" in capsys.readouterr().err


def test_a_target_that_is_not_there_is_made_and_one_that_is_keeps_the_rest() -> None:
    hub = RecordedHub()
    assert hub.run("targets", "put", "archive", "--max-per-second", "0") == 0
    assert ("PATCH", "/v1/targets/archive", {"max_per_second": None}) in hub.asked
    assert hub.run("targets", "put", "new", "--type", "stub", "--source", "streams r/s") == 1, "the recording has none"
    body = {"type": "stub", "sources": [{"contract": "streams", "scope": "r/s"}]}
    made = hub.asked[-1]
    assert made == ("PUT", "/v1/targets/new", body)


@pytest.mark.parametrize(
    ("text", "contract", "scope"),
    [("sync demo", "sync", "demo"), ("sync/demo", "sync", "demo"), ("streams a/b", "streams", "a/b")],
)
def test_a_source_is_a_contract_and_a_scope(text: str, contract: str, scope: str) -> None:
    assert source_of(text) == {"contract": contract, "scope": scope}


def test_a_source_without_a_scope_is_a_mistake() -> None:
    with pytest.raises(Usage, match="sync demo"):
        source_of("sync")


def test_a_target_is_deleted_only_when_asked_and_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    hub = RecordedHub()
    assert hub.run("targets", "delete", "archive") == 2
    assert hub.asked == []


def test_a_tail_says_what_is_no_longer_kept(capsys: pytest.CaptureFixture[str]) -> None:
    page = {"events": [EVENT], "next_after": 17, "head": 17, "floor": 17}
    world = World(httpx.MockTransport(lambda _: httpx.Response(200, json=page)), lambda _: None)
    call = ["events", "tail", "sync", "demo", "--after", "3", "--count", "1", "--url", URL, "--token", "T"]
    assert cli.main(call, world) == 0
    assert "Gap: events 4 to 16 are no longer kept." in capsys.readouterr().err


def test_the_console_gets_its_token_in_the_fragment(capsys: pytest.CaptureFixture[str]) -> None:
    assert RecordedHub().run("console", "--print") == 0
    assert capsys.readouterr().out.strip() == f"{URL}/console#token=T" == console_address(f"{URL}/", "T")


def test_without_a_browser_the_address_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    opened: list[str] = []
    for can, printed in ((True, False), (False, True)):

        def open_(address: str, can: bool = can) -> bool:
            opened.append(address)
            return can

        monkeypatch.setattr("webbrowser.open", open_)
        assert RecordedHub().run("console") == 0
        assert (f"{URL}/console#token=T" in capsys.readouterr().out) is printed
    assert opened == [f"{URL}/console#token=T"] * 2
