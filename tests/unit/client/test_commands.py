"""`millrace capture` and `millrace sync` as a person uses them, with targets on this machine."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jwt
import pytest
from standardwebhooks.webhooks import Webhook

from millrace.delivery.domain.addresses import Reach
from millrace.delivery.domain.signing import new_secret
from millrace.delivery.receivers.inbox import StubInbox
from millrace.delivery.receivers.outbound import Outbound
from millrace_client.commands import cli
from millrace_client.commands.connection import World
from millrace_client.commands.stub import serve
from millrace_client.commands.sync import status as cli_status
from millrace_client.journal.delivery_status import SUGGEST_BYTES
from millrace_client.journal.local_journal import LocalJournal
from millrace_client.journal.lock import drain_lock
from millrace_client.journal.session import Surroundings
from tests.support.local_target import LocalTarget, accept, answer, local_target
from tests.support.old_queues import note, old_queue, queued, scoped
from tests.support.worlds import Clock

TEAM = jwt.encode({"client_id": "me", "team_slug": "acme"}, "s" * 32)
TENANT_ONLY = jwt.encode({"client_id": "me", "tenant": "acme"}, "s" * 32)
NOBODY = jwt.encode({"client_id": "me"}, "s" * 32)
EXPIRED = jwt.encode({"client_id": "me", "team_slug": "acme", "exp": 1}, "s" * 32)


@dataclass
class Shell:
    """One person's machine: a home folder, an environment, a clock."""

    home: Path
    capsys: pytest.CaptureFixture[str]
    environment: dict[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=lambda: Clock(1_700_000_000_000))
    token: str | None = TEAM
    reached: list[Reach] = field(default_factory=list)
    stderr: str = ""

    def __call__(self, *arguments: str) -> int:
        world = World(around=Surroundings(self.environment, self.clock, lambda: 0.0, self.outbound))
        hosted = arguments[:2] in (("sync", "now"), ("sync", "status"), ("sync", "targets"))
        token = ["--token", self.token] if hosted and self.token else []
        return cli.main([*arguments, *token, "--home", str(self.home)], world)

    def json(self, *arguments: str, code: int = 0) -> Any:
        self.capsys.readouterr()
        assert self(*arguments, "--json") == code, self.capsys.readouterr().err
        captured = self.capsys.readouterr()
        self.stderr = captured.err
        return json.loads(captured.out)

    def outbound(self, reach: Reach) -> Outbound:
        self.reached.append(reach)
        return Outbound(reach, total_s=10)

    def configure(self, text: str) -> None:
        self.home.mkdir(exist_ok=True)
        (self.home / "config.toml").write_text(text)

    def point_at(self, *servers: LocalTarget) -> None:
        self.configure(f'[sync]\nserver_url = "{servers[0].url}"\nallow_loopback = true\n')

    def capture(self, *ids: str, kind: str = "note") -> None:
        for id_ in ids:
            assert self("capture", "--type", kind, "--payload", "1", "--id", id_) == 0


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    for name in ("MILLRACE_TOKEN", "MILLRACE_HOME", "SPEC_KITTY_SAAS_URL", "SPEC_KITTY_ENABLE_SAAS_SYNC"):
        monkeypatch.delenv(name, raising=False)
    return Shell(tmp_path / "home", capsys)


@pytest.fixture
def hub() -> Iterator[LocalTarget]:
    with local_target(accept) as target:
        yield target


def test_disabled_sync_leaves_events_durable(shell: Shell, hub: LocalTarget) -> None:
    """Required: Disabled sync + event production leaves Teamspace-bound events locally durable."""
    shell.point_at(hub)
    shell.environment["SPEC_KITTY_ENABLE_SAAS_SYNC"] = "0"
    shell.capture("e1")
    blocked = shell.json("sync", "now", code=1)
    assert blocked["targets"][0]["blocked"] == "saas_disabled"
    status = shell.json("sync", "status")
    assert status["event_journal"]["retained_event_count"] == 1
    assert status["event_journal"]["drain_blocked"][0]["reason"] == "saas_disabled"
    assert hub.requests == []
    del shell.environment["SPEC_KITTY_ENABLE_SAAS_SYNC"]
    shell.json("sync", "now")
    assert [request.ids for request in hub.requests] == [["e1"]]
    assert shell.json("sync", "status", "--check")["event_journal"]["drain_blocked"] == []


@pytest.mark.parametrize(
    ("token", "team", "reason"),
    [
        (None, "", "missing_auth"),
        ("no token", "", "missing_auth"),
        (EXPIRED, "", "missing_auth"),
        (NOBODY, "", "missing_team"),
        (TENANT_ONLY, "", "private_teamspace_gate"),
        (NOBODY, "acme", "private_teamspace_gate"),
        (None, "acme", "missing_auth"),
    ],
)
def test_missing_auth_or_team_leaves_events_durable_with_the_reason_shown(
    shell: Shell, hub: LocalTarget, token: str | None, team: str, reason: str
) -> None:
    """Required: Missing auth/team leaves events locally durable with blocked-drain diagnostics."""
    shell.point_at(hub)
    shell.configure((shell.home / "config.toml").read_text() + (f'team_slug = "{team}"\n' if team else ""))
    shell.capture("e1")
    shell.token = token
    [result] = shell.json("sync", "now", code=1)["targets"]
    assert result["blocked"] == reason
    status = shell.json("sync", "status", "--check", code=1)
    assert [one["reason"] for one in status["event_journal"]["drain_blocked"]] == [reason]
    assert status["event_journal"]["retained_event_count"] == 1
    assert hub.requests == []
    shell.token = TEAM
    shell.json("sync", "now")
    assert shell.json("sync", "status")["event_journal"]["drain_blocked"] == []
    assert [request.ids for request in hub.requests] == [["e1"]]


def test_no_network_leaves_events_durable_and_exits_with_3(shell: Shell) -> None:
    with local_target(accept) as gone:
        pass
    shell.point_at(gone)
    shell.capture("e1")
    assert shell.json("sync", "now", code=3)["targets"][0]["blocked"] == "network_unavailable"
    assert shell.json("sync", "status")["event_journal"]["drain_blocked"][0]["reason"] == "network_unavailable"


def test_while_another_process_drains_nothing_is_sent_and_capturing_goes_on(shell: Shell, hub: LocalTarget) -> None:
    """D2: daemon_lock."""
    shell.point_at(hub)
    shell.capture("e1")
    with drain_lock(shell.home / "event_journal.lock"):
        shell.capture("e2")
        assert shell.json("sync", "now", code=1)["targets"][0]["blocked"] == "daemon_lock"
        for command in ("gc", "archive", "migrate"):
            assert shell("sync", command) == 1
    assert hub.requests == []
    assert shell.json("sync", "status")["event_journal"]["drain_blocked"][0]["reason"] == "daemon_lock"
    shell.json("sync", "now")
    assert hub.requests[0].ids == ["e1", "e2"]


def test_env_and_config_that_disagree_stop_before_any_network(shell: Shell, hub: LocalTarget) -> None:
    """Required: Env/config disagreement cannot derive queue scope for one target while posting to another. D1."""
    shell.point_at(hub)
    shell.capture("e1")
    with local_target(accept) as other:
        shell.environment["SPEC_KITTY_SAAS_URL"] = other.url
        error = shell.json("sync", "now", code=2)
        assert "--process-override" in error["error"]["message"]
        status = shell.json("sync", "status", "--check", code=2)
        shown = status["target_authority"]
        assert "--process-override" in shown["error"]
        assert (shown["configured_server_url"], shown["env_server_url"]) == (hub.url, other.url)
        assert shown["resolved_server_url"] is None
        assert shell.reached == []
        overridden = shell.json("sync", "status", "--process-override")["target_authority"]
        assert overridden["override_mode"] == "process_override"
        assert overridden["resolved_server_url"] == other.url
        shell.json("sync", "now", "--process-override")
    assert hub.requests == []
    assert [request.ids for request in other.requests] == [["e1"]]


def test_status_exposes_the_target_authority_and_ignores_a_stale_scope(shell: Shell, hub: LocalTarget) -> None:
    """Required: sync status --check --json exposes target-authority fields."""
    shell.point_at(hub)
    (shell.home / "active_queue_scope").write_text("feedfacefeedface\n")
    authority = shell.json("sync", "status", "--check")["target_authority"]
    scope = f"{hub.url}|me|acme"
    assert authority == {
        "configured_server_url": hub.url,
        "env_server_url": None,
        "override_mode": "none",
        "resolved_server_url": hub.url,
        "user_id": "me",
        "team_slug": "acme",
        "derived_queue_scope": scope,
        "queue_db_path": f"{shell.home}/queues/queue-{hashlib.sha256(scope.encode()).hexdigest()[:16]}.db",
        "active_queue_scope_status": "stale_non_authoritative",
        "error": None,
    }


def test_from_a_to_b_and_back_to_a_nothing_is_sent_twice(shell: Shell, hub: LocalTarget) -> None:
    """Required: Sync to target A, switch to target B, and deliver the same retained events; re-sync to A skips."""
    shell.capture("e1", "e2")
    shell.point_at(hub)
    shell.json("sync", "now")
    with local_target(accept) as other:
        shell.point_at(other)
        shell.json("sync", "now")
        assert [request.ids for request in other.requests] == [["e1", "e2"]]
    shell.point_at(hub)
    shell.capture("e3")
    shell.json("sync", "now")
    assert [request.ids for request in hub.requests] == [["e1", "e2"], ["e3"]]
    ledger = shell.json("sync", "status")["delivery_ledger"]
    assert (ledger["current_target_delivered_count"], ledger["previous_target_delivered_count"]) == (3, 2)


def test_another_team_on_the_same_server_is_another_target(shell: Shell, hub: LocalTarget) -> None:
    shell.point_at(hub)
    shell.capture("e1")
    [first] = shell.json("sync", "now")["targets"]
    shell.token = jwt.encode({"client_id": "me", "team_slug": "other"}, "s" * 32)
    [second] = shell.json("sync", "now")["targets"]
    assert first["target"] != second["target"]
    assert [request.ids for request in hub.requests] == [["e1"]], "e1 is the first team's"


def test_status_has_all_sections_beside_the_old_fields_and_keeps_the_counts_apart(shell: Shell) -> None:
    """Required: JSON includes all new sections while preserving old top-level fields; and the five counts."""
    old_queue(shell.home / "queue.db", note("q1"), uploads=2, failures=1)
    old_queue(scoped(shell.home, "a"), note("q2"), uploads=3)
    shell.capture("e1", "e2", "e3")
    with local_target(accept) as before:
        shell.point_at(before)
        shell.json("sync", "now")
    shell.capture("e4")
    with local_target(answer(413), answer(413), answer(413), accept, answer(413), accept, accept) as today:
        shell.point_at(today)
        shell.json("sync", "now", code=1)
    status = shell.json("sync", "status", "--check", code=1)
    old = {"ok", "exit_code", "auth_required", "auth_present", "active_queue", "legacy_queue"}
    new = {
        "target_authority",
        "event_journal",
        "delivery_targets",
        "delivery_ledger",
        "migration_conflicts",
        "terminal_failures",
        "body_upload_compatibility",
    }
    assert status.keys() == old | new
    assert [status[name] for name in ("ok", "exit_code", "auth_required", "auth_present")] == [False, 1, True, True]
    assert status["legacy_queue"] == {
        "path": str(shell.home / "queue.db"),
        "event_count": 1,
        "body_upload_count": 2,
    }
    assert status["active_queue"] == {
        "path": status["target_authority"]["queue_db_path"],
        "event_count": 0,
        "body_upload_count": 0,
    }
    ledger = status["delivery_ledger"]
    terminal = ledger["terminal_failed_count"]
    assert terminal == len(status["terminal_failures"]["failures"]) == 1
    assert ledger["retained_event_count"] == 4
    assert ledger["current_target_delivered_count"] == 4 - terminal
    assert ledger["previous_target_delivered_count"] == 3
    assert status["body_upload_compatibility"]["body_upload_count"] == 5
    assert status["body_upload_compatibility"]["body_upload_failure_count"] == 1
    assert shell("sync", "status") == 0
    assert "given up" in shell.capsys.readouterr().out


def test_gc_is_suggested_only_for_much_that_every_known_target_has(
    shell: Shell, hub: LocalTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Required: GC/archive suggestions trigger only when retained payloads are large and delivered to all targets."""

    def suggested() -> bool:
        return shell.json("sync", "status")["event_journal"]["suggestion"] is not None

    assert SUGGEST_BYTES == 50 * 1024 * 1024
    shell.point_at(hub)
    shell.capture("e1", "e2", "e3")
    assert not suggested()
    monkeypatch.setattr(cli_status, "SUGGEST_BYTES", 100)
    assert not suggested(), "large, but not delivered"
    shell.json("sync", "now")
    assert suggested()
    monkeypatch.setattr(cli_status, "SUGGEST_BYTES", SUGGEST_BYTES)
    assert not suggested(), "delivered, but small"
    monkeypatch.setattr(cli_status, "SUGGEST_BYTES", 100)
    config = (shell.home / "config.toml").read_text()
    shell.configure(config + '[sync.targets.other]\ntype = "stub"\nurl = "http://127.0.0.1:1"\n')
    shell.json("sync", "now", code=3)
    assert not suggested(), "one known target has not got it"
    assert shell("sync", "targets", "--forget", "other") == 0
    assert not suggested(), "it is still configured"
    shell.configure(config)
    assert suggested()
    assert shell.json("sync", "gc")["events"] == 3
    assert not suggested()


def test_several_targets_at_once_and_a_dead_one_holds_no_other_back(shell: Shell, hub: LocalTarget) -> None:
    """D6."""
    secret = new_secret(b"k" * 32)
    shell.environment["HOOK_SECRET"] = secret
    with local_target(answer(500)) as dead, local_target(answer(200)) as hook:
        shell.configure(
            f"""
            [sync]
            server_url = "{hub.url}"
            allow_loopback = true
            [sync.targets.dead]
            type = "external"
            url = "{dead.url}"
            secrets = ["env:HOOK_SECRET"]
            [sync.targets.hook]
            type = "external"
            mode = "webhook"
            url = "{hook.url}/orders"
            secrets = ["env:HOOK_SECRET"]
            families = ["order."]
            """
        )
        shell.clock.now_ms = int(time.time() * 1000)
        shell.capture("n1")
        shell.capture("o1", kind="order.paid")
        results = {one["target"]: one["counts"] for one in shell.json("sync", "now", code=1)["targets"]}
    assert results["dead"]["transient"] == 2
    assert results["hook"]["success"] == 1
    assert sorted(counts["success"] for counts in results.values()) == [0, 1, 2]
    assert hub.requests[0].ids == ["n1", "o1"]
    [request] = hook.requests
    assert Webhook(secret).verify(request.body, request.headers)["event_id"] == "o1"
    assert secret not in json.dumps(shell.json("sync", "status"))


def test_an_external_target_needs_no_secret_and_status_says_unsigned(shell: Shell) -> None:
    """D12"""
    with local_target(accept) as target:
        settings = f'[sync]\nallow_loopback = true\n[sync.targets.audit]\ntype = "external"\nurl = "{target.url}"\n'
        shell.configure(settings)
        shell.token = None
        shell.capture("e1")
        assert shell.json("sync", "now")["targets"][0]["counts"]["success"] == 1
        [shown] = shell.json("sync", "status", "--check")["delivery_targets"]
        assert (shown["id"], shown["unsigned"]) == ("audit", True)
        assert shell.json("sync", "targets")["targets"][0]["unsigned"] is True
        for command in ("status", "targets"):
            shell("sync", command)
            assert "unsigned" in shell.capsys.readouterr().out
        shell.configure(f'{settings}secrets = ["{new_secret(b"k" * 32)}"]\n')
        assert shell.json("sync", "status")["delivery_targets"][0]["unsigned"] is False
    assert "webhook-signature" not in target.requests[0].headers


def test_local_only_events_stay_and_discardable_ones_go_only_when_opted_out(shell: Shell, hub: LocalTarget) -> None:
    shell.configure(
        f"""
        [sync]
        server_url = "{hub.url}"
        allow_loopback = true
        opt_out = ["debug.", "order."]
        [sync.families]
        "debug." = "discardable"
        "here." = "local_only"
        """
    )
    shell.capture("h", kind="here.note")
    assert shell.json("capture", "--type", "debug.x", "--payload", "1", "--id", "d")["discarded"] == ["d"]
    kept = shell.json("capture", "--type", "order.paid", "--payload", "1", "--id", "o")
    assert kept["kept_despite_opt_out"] == ["o"]
    shell.json("sync", "now")
    assert hub.requests[0].ids == ["o"]
    assert shell.json("sync", "status")["event_journal"]["retained_event_count"] == 2


def test_a_broken_configuration_stops_no_capture_and_leaks_nothing(shell: Shell, hub: LocalTarget) -> None:
    """D2: the event is durable; what it may be sent to is decided once the configuration can be read."""
    shell.configure("[sync\n")
    shell.capture("h", kind="here.note")
    shell.capture("o", kind="order.paid")
    assert shell("sync", "now") == 2
    shell.configure(
        f'[sync]\nserver_url = "{hub.url}"\nallow_loopback = true\n[sync.families]\n"here." = "local_only"\n'
    )
    assert shell.json("sync", "archive", "--dry-run")["events"] == 1, "only what is wanted nowhere"
    shell.json("sync", "now")
    assert [request.ids for request in hub.requests] == [["o"]]


@pytest.mark.parametrize(
    "config",
    [
        "sync = 1",
        "[sync]\nserver_url = 1",
        "[sync]\nallow_loopback = 1",
        '[sync]\nserver_url = "nowhere"',
        "[sync]\nopt_out = 1",
        '[sync.families]\na = "b"',
        '[sync.targets.x]\ntype = "external"',
        '[sync.targets.x]\ntype = "external"\nurl = "https://10.0.0.1/"\nsecrets = ["env:S"]',
        '[sync.targets.x]\ntype = "external"\nurl = "http://a.example/"\nsecrets = ["env:S"]',
        '[sync.targets.x]\ntype = "external"\nurl = "https://a.example/"\nsecrets = ["short"]',
        '[sync.targets.x]\ntype = "external"\nurl = "https://a.example/"\nsecrets = ["env:UNSET"]',
        '[sync.targets.x]\ntype = "stub"\nurl = "http://8.8.8.8/"',
        '[sync.targets.x]\ntype = "teamspace"',
        "[sync.targets]\nx = 1",
        "\xff",
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused_in_one_line(shell: Shell, config: str) -> None:
    shell.environment["S"] = new_secret(b"s" * 32)
    shell.configure(config)
    error = shell.json("sync", "now", code=2)["error"]
    assert error["code"] == "usage"
    assert "Traceback" not in shell.stderr
    assert "short" not in shell.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["capture"],
        ["capture", "--type", "t"],
        ["capture", "--type", "t", "--payload", "{"],
        ["capture", "--type", "", "--payload", "1"],
        ["capture", "--type", "t", "--payload", "1", "--id", ""],
        ["capture", "--type", "t", "--payload", "NaN"],
        ["capture", "--type", "t", "--payload", "1", "--coalesce", ""],
        ["capture", "--file", "nowhere"],
        ["capture", "--file", "x", "--type", "t"],
        ["sync", "now", "--target", "nobody"],
        ["sync", "now", "--process-override"],
        ["sync", "retry"],
        ["sync", "retry", "e1", "--all"],
        ["sync", "retry", "e1"],
        ["sync", "retry", "e1", "--target", "nobody"],
        ["sync", "archive", "--older-than", "soon"],
        ["sync", "migrate", "--resolve", "e1"],
        ["sync", "migrate", "--keep", "journal"],
        ["sync", "targets", "--forget", "nobody"],
    ],
)
def test_a_call_that_makes_no_sense_exits_with_2_and_one_line(shell: Shell, arguments: list[str]) -> None:
    shell.capsys.readouterr()
    assert shell(*arguments) == 2
    told = shell.capsys.readouterr().err
    assert "Traceback" not in told
    assert told.strip()


def test_a_file_is_captured_whole_or_not_at_all_byte_for_byte(shell: Shell, hub: LocalTarget, tmp_path: Path) -> None:
    good = b'{"event_id": "f1", "event_type":"t", "x": 1.50}'
    file = tmp_path / "events.jsonl"
    file.write_bytes(good + b"\n\n" + b'{"event_id":"f2"}\n')
    assert shell("capture", "--file", str(file)) == 2
    told = shell.capsys.readouterr().err
    assert "line 3: event_type" in told
    assert "Nothing of the file was kept." in " ".join(told.split())
    file.write_bytes(b"  " + good + b" \r\n")
    assert [one["fresh"] for one in shell.json("capture", "--file", str(file))["captured"]] == [True]
    assert [one["fresh"] for one in shell.json("capture", "--file", str(file))["captured"]] == [False]
    file.write_bytes(good.replace(b"1.50", b"2"))
    assert shell("capture", "--file", str(file)) == 1, "the same id with other content"
    shell.point_at(hub)
    shell.json("sync", "now")
    assert hub.requests[0].text == b'{"events":[' + good + b"]}"


def test_capturing_from_python(shell: Shell, hub: LocalTarget) -> None:
    with LocalJournal(shell.home) as journal:
        journal.capture({"event_id": "p1", "event_type": "note"}, coalesce_key="k")
        report = journal.capture('{"event_id": "p2", "event_type": "note"}', coalesce_key="k")
        assert report.taken[0].superseded == "p1"
        journal.capture([b'{"event_id": "p3", "event_type": "note"}', {"event_id": "p4", "event_type": "note"}])
    shell.point_at(hub)
    shell.json("sync", "now")
    assert hub.requests[0].ids == ["p2", "p3", "p4"]


def test_what_was_given_up_is_shown_and_tried_again_by_hand(shell: Shell) -> None:
    """D4."""
    with local_target(answer(413), accept) as target:
        shell.point_at(target)
        shell.capture("e1")
        shell.json("sync", "now", code=1)
        shell.clock.ahead(10**9)
        assert shell.json("sync", "now")["targets"][0]["counts"]["success"] == 0
        assert shell("sync", "retry", "nobody") == 1
        assert shell.json("sync", "retry", "e1")["retried"] == 1
        assert shell.json("sync", "now")["targets"][0]["counts"]["success"] == 1
        assert shell("sync", "retry", "e1") == 1, "it is delivered"
        assert shell.json("sync", "retry", "--all")["retried"] == 0


def test_410_pauses_until_the_target_is_resumed_by_hand(shell: Shell) -> None:
    with local_target(answer(410), accept) as target:
        shell.point_at(target)
        shell.capture("e1")
        [result] = shell.json("sync", "now", code=1)["targets"]
        assert result["blocked"] == "paused"
        assert shell.json("sync", "status", "--check", code=1)["delivery_targets"][0]["paused"] == "answered 410: gone"
        assert shell("sync", "targets", "--resume", result["target"]) == 0
        shell.json("sync", "now")
        assert shell("sync", "targets", "--pause", result["target"]) == 0
        shell.json("sync", "now", code=1)
        assert shell("sync", "targets", "--pause", "nobody") == 1
    assert len(target.requests) == 2


def test_a_target_that_is_left_alone_is_asked_again_by_force(shell: Shell) -> None:
    with local_target(answer(503, b"", **{"Retry-After": "3600"}), accept) as target:
        shell.point_at(target)
        shell.capture("e1")
        shell.json("sync", "now", code=1)
        shell.clock.ahead(60_000)
        assert shell.json("sync", "now", code=1)["targets"][0]["open_until_ms"] > shell.clock()
        shell.capture("e2")
        assert shell.json("sync", "now", "--force", code=1)["targets"][0]["left"] == 2
    assert len(target.requests) == 1, "the event itself still waits as long as it was asked to"


def test_a_new_secret_can_be_used(shell: Shell) -> None:
    shell.capsys.readouterr()
    assert shell("sync", "targets", "--new-secret") == 0
    assert Webhook(shell.capsys.readouterr().out.strip()).sign("m", datetime.now(UTC), "{}")


def test_migration_exits_with_1_until_its_conflicts_are_settled(shell: Shell) -> None:
    """D10."""
    old_queue(shell.home / "queue.db", note("e1", n=1))
    source = old_queue(scoped(shell.home, "a"), note("e1", n=2))
    migrated = shell.json("sync", "migrate", "--clean", code=1)
    assert migrated["cleanup_blocked"]
    assert {one["scope"] for one in migrated["sources"]} == {"unknown"}
    assert "deleted" in migrated["note"]
    [conflict] = shell.json("sync", "status")["migration_conflicts"]["conflicts"]
    assert conflict["source"] == str(source)
    assert shell.json("sync", "migrate", "--resolve", "e1", "--keep", "journal") == {"resolved": 1}
    assert shell("sync", "migrate", "--resolve", "e1", "--keep", "journal") == 1
    assert shell.json("sync", "migrate", "--clean")["ok"]
    assert queued(source) == []


def test_nothing_is_removed_that_a_server_without_a_login_has_yet_to_get(shell: Shell, hub: LocalTarget) -> None:
    """D3: what only another target has is kept for the Teamspace, and so is it for a target that was never drained."""
    shell.point_at(hub)
    server = (shell.home / "config.toml").read_text()
    shell.configure(server + '[sync.targets.ci]\ntype = "stub"\n')
    shell.token = None
    shell.capture("e1")
    shell.json("sync", "now", code=1)
    for command in ("gc", "archive"):
        assert shell.json("sync", command)["events"] == 0
    shell.token = TEAM
    shell.json("sync", "now")
    shell.configure(server + '[sync.targets.ci]\ntype = "stub"\n[sync.targets.new]\ntype = "stub"\n')
    assert shell.json("sync", "gc")["events"] == 0
    shell.json("sync", "now")
    assert shell.json("sync", "gc")["events"] == 1


def test_archive_and_gc_say_what_they_did(shell: Shell, hub: LocalTarget) -> None:
    shell.point_at(hub)
    shell.capture("e1", "e2")
    shell.json("sync", "now")
    assert shell.json("sync", "archive", "--older-than", "1h")["events"] == 0
    assert shell.json("sync", "gc", "--dry-run")["events"] == 2
    archived = shell.json("sync", "archive")
    assert (archived["events"], len(archived["files"])) == (2, 1)
    assert shell.json("sync", "gc")["events"] == 0
    assert shell.json("sync", "status")["event_journal"]["captured_event_count"] == 2


def test_the_stub_on_localhost_takes_events_without_credentials(shell: Shell) -> None:
    inbox = StubInbox()
    with serve(inbox) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        shell.configure(f'[sync.targets.ci]\ntype = "stub"\nurl = "http://127.0.0.1:{server.server_port}"\n')
        shell.token = None
        shell.capture("e1", "e2")
        assert shell.json("sync", "now")["targets"][0]["counts"]["success"] == 2
        server.shutdown()
        thread.join()
    assert list(inbox.events) == ["e1", "e2"]


def test_the_journal_is_private_in_wal_mode_and_refuses_a_newer_version(shell: Shell) -> None:
    shell.capture("e1")
    path = shell.home / "event_journal.db"
    assert path.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.execute("PRAGMA user_version = 99")
    assert shell("sync", "status") == 2
    path.write_bytes(b"not a database")
    assert shell("capture", "--type", "t", "--payload", "1") == 2


def test_every_command_explains_itself_with_examples(shell: Shell) -> None:
    commands: list[list[str]] = [["capture"], ["stub"]]
    commands += [
        ["sync", name]
        for name in ("now", "status", "gc", "archive", "migrate", "retry", "targets", "conflicts", "audit")
    ]
    for command in commands:
        shell.capsys.readouterr()
        assert cli.main([*command, "--help"]) == 0
        shown = shell.capsys.readouterr().out
        assert "Example" in shown
        assert f"millrace {' '.join(command)}" in shown
