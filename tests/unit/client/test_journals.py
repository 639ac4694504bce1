"""One journal per producer, migration into it, what was archived, the audit trail and status, as a person uses them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from millrace_client.journal.local_journal import LocalJournal
from tests.support.local_target import LocalTarget, accept, answer, local_target
from tests.support.old_queues import note, old_journal, old_queue, scoped
from tests.unit.client.test_commands import Shell

DOCS = Path(__file__).parents[3] / "docs" / "delivery.md"


def token(team: str | None, user: str = "me") -> str:
    claims = {"client_id": user} if team is None else {"client_id": user, "team_slug": team}
    return jwt.encode(claims, "s" * 32)


RED, BLUE = token("red"), token("blue")


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    for name in ("MILLRACE_TOKEN", "MILLRACE_HOME", "SPEC_KITTY_SAAS_URL", "SPEC_KITTY_ENABLE_SAAS_SYNC"):
        monkeypatch.delenv(name, raising=False)
    return Shell(tmp_path / "home", capsys, token=RED)


@pytest.fixture
def hub() -> Iterator[LocalTarget]:
    with local_target(accept) as target:
        yield target


def capture(shell: Shell, event_id: str, as_whom: str | None) -> None:
    arguments = [] if as_whom is None else ["--token", as_whom]
    assert shell("capture", "--type", "note", "--payload", "1", "--id", event_id, *arguments) == 0


def drain(shell: Shell, as_whom: str, code: int = 0) -> dict[str, Any]:
    shell.token = as_whom
    [result] = shell.json("sync", "now", code=code)["targets"]
    return dict(result)


def sent(hub: LocalTarget) -> list[tuple[str, str]]:
    """Which event went out under which team's token."""
    found = []
    for request in hub.requests:
        claims = jwt.decode(request.headers["authorization"].split()[1], options={"verify_signature": False})
        found += [(id_, claims["team_slug"]) for id_ in request.ids]
    return found


def test_one_teams_facts_never_leave_under_another_teams_token(shell: Shell, hub: LocalTarget) -> None:
    """D1: a drain sends only its own producer's journal, and says that others have events."""
    shell.point_at(hub)
    capture(shell, "r1", RED)
    capture(shell, "b1", BLUE)
    with LocalJournal(shell.home, token=RED) as journal:
        journal.capture({"event_id": "r2", "event_type": "note"})
    drain(shell, BLUE)
    assert sent(hub) == [("b1", "blue")]
    [other] = shell.json("sync", "status")["event_journal"]["other_journals"]
    assert (other["user_id"], other["team_slug"]) == ("me", "red")
    assert (other["retained_event_count"], other["unclaimed"]) == (2, False)
    assert shell("sync", "status") == 0
    assert "only me/red delivers them" in " ".join(shell.capsys.readouterr().out.split())
    drain(shell, token("red", user="somebody else"))
    drain(shell, RED)
    assert sent(hub) == [("b1", "blue"), ("r1", "red"), ("r2", "red")]


def test_the_environment_says_who_captures_from_python(
    shell: Shell, hub: LocalTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.point_at(hub)
    monkeypatch.setenv("MILLRACE_TOKEN", RED)
    with LocalJournal(shell.home) as journal:
        journal.capture({"event_id": "r1", "event_type": "note"})
    monkeypatch.delenv("MILLRACE_TOKEN")
    drain(shell, BLUE)
    assert sent(hub) == []


def test_what_nobody_captured_goes_to_the_first_who_is_known_with_an_audit_row(shell: Shell, hub: LocalTarget) -> None:
    """D1: the journal of today's users is such a one; nothing of it is lost, and nothing is sent twice."""
    shell.point_at(hub)
    capture(shell, "n1", None)
    status = shell.json("sync", "status")["event_journal"]
    assert (status["retained_event_count"], status["unclaimed_event_count"]) == (0, 1)
    drain(shell, RED)
    shell.clock.ahead(1000)
    drain(shell, BLUE)
    capture(shell, "n2", None)
    drain(shell, BLUE)
    drain(shell, RED)
    assert sent(hub) == [("n1", "red"), ("n2", "blue")]
    entries = shell.json("sync", "audit", "--what", "journal_taken_over")["entries"]
    assert [(one["team_slug"], one["subject"], one["detail"]) for one in entries] == [
        ("red", str(shell.home / "event_journal.db"), "1 events"),
        ("blue", str(shell.home / "event_journal.db"), "1 events"),
    ]


def test_a_half_known_producers_journal_goes_to_one_that_agrees_with_it(shell: Shell, hub: LocalTarget) -> None:
    shell.configure(f'[sync]\nserver_url = "{hub.url}"\nallow_loopback = true\nteam_slug = "red"\n')
    capture(shell, "t1", None)
    shell.point_at(hub)
    capture(shell, "u1", token(None))
    drain(shell, BLUE)
    assert sent(hub) == [("u1", "blue")], "a user of whom no team was known; t1 is of the team red"
    drain(shell, RED)
    assert sent(hub) == [("u1", "blue"), ("t1", "red")]


def test_the_active_queue_is_the_one_the_tools_in_use_write_to(shell: Shell, hub: LocalTarget) -> None:
    """D1: a real queue of five is shown as five, and its scope is not stale."""
    shell.point_at(hub)
    scope = f"{hub.url}|me|red"
    digest = hashlib.sha256(scope.encode()).hexdigest()[:16]
    path = old_queue(shell.home / "queues" / f"queue-{digest}.db", *[note(f"q{n}") for n in range(5)], uploads=1)
    (shell.home / "active_queue_scope").write_text(f"{scope}\n")
    status = shell.json("sync", "status")
    assert status["active_queue"] == {"path": str(path), "event_count": 5, "body_upload_count": 1}
    assert status["target_authority"]["derived_queue_scope"] == scope
    assert status["target_authority"]["active_queue_scope_status"] == "matches"


def test_a_queue_of_ours_is_ours_and_others_are_nobodys_until_somebody_delivers(shell: Shell, hub: LocalTarget) -> None:
    """D1, D10: and a migration that is run again gives nothing of one producer to another."""
    shell.point_at(hub)
    digest = hashlib.sha256(f"{hub.url}|me|red".encode()).hexdigest()[:16]
    old_queue(shell.home / "queues" / f"queue-{digest}.db", note("ours"), note("both"))
    old_queue(scoped(shell.home, "a"), note("whose"), note("blues"))
    for event_id in ("both", "blues"):
        with LocalJournal(shell.home, token=BLUE) as journal:
            journal.capture(note(event_id))
    old_journal(shell.home / "event_journal" / "journal-a.db", note("journaled"))
    stranger = old_queue(shell.home / "queues" / "backup.db", note("x"))
    migrated = shell.json("sync", "migrate", "--token", RED)
    counts = {Path(one["path"]).stem: (one["imported"], one["known_before"]) for one in migrated["sources"]}
    assert counts == {f"queue-{digest}": (2, 0), "queue-" + "a" * 16: (1, 1), "journal-a": (1, 0)}
    assert [one["kind"] for one in migrated["sources"]] == ["queue", "queue", "journal"]
    assert migrated["other_files"] == [str(stranger)]
    drain(shell, BLUE)
    theirs = [(event_id, "blue") for event_id in ("blues", "both", "journaled", "whose")]
    assert sorted(sent(hub)) == theirs
    again = shell.json("sync", "migrate")
    assert {one["imported"] for one in again["sources"]} == {0}
    drain(shell, RED)
    assert sorted(sent(hub)) == sorted([*theirs, ("ours", "red"), ("both", "red")])
    assert shell("sync", "migrate") == 0
    assert str(stranger) in "".join(shell.capsys.readouterr().err.split("\n"))


def test_both_contents_of_a_conflict_are_shown_side_by_side(shell: Shell) -> None:
    """D10: before one decides, and after."""
    old_queue(shell.home / "queue.db", note("e1", n=1), note("e2"))
    source = old_queue(scoped(shell.home, "a"), note("e1", n=2))
    shell.json("sync", "migrate", code=1)
    assert shell("sync", "conflicts") == 0
    shown = shell.capsys.readouterr().out
    assert '"n": 1' in shown
    assert '"n": 2' in shown
    [both] = shell.json("sync", "conflicts", "e1")["conflicts"]
    expected = {"source": str(source), "kept": None, "journal_content": json.dumps(note("e1", n=1))}
    assert both | expected == both
    shell.json("sync", "migrate", "--resolve", "e1", "--keep", "source")
    [both] = shell.json("sync", "conflicts", "e1")["conflicts"]
    assert both["kept"] == "source"
    assert json.loads(both["journal_content"])["n"] == 1
    assert json.loads(both["source_content"])["n"] == 2
    assert shell.json("sync", "conflicts")["conflicts"] == [], "only open ones, unless an event is named"
    assert shell("sync", "conflicts", "e2") == 1


def test_a_drain_that_cannot_deliver_what_is_archived_says_so_until_it_is_restored(
    shell: Shell, hub: LocalTarget
) -> None:
    """D3: the archive can be read back."""
    shell.point_at(hub)
    capture(shell, "e1", RED)
    capture(shell, "e2", None)
    drain(shell, RED)
    assert shell.json("sync", "archive")["events"] == 2
    assert drain(shell, RED)["complete"], "this target has them"
    with local_target(accept) as new:
        shell.point_at(new)
        result = drain(shell, RED, code=1)
        assert (result["complete"], result["archived"], result["left"]) == (False, 2, 0)
        assert "sync archive --restore" in result["detail"]
        assert drain(shell, RED, code=1)["archived"] == 2, "as long as it is so"
        status = shell.json("sync", "status", "--check", code=1)
        assert status["delivery_ledger"]["archived_undelivered_count"] == 2
        assert status["event_journal"]["archived_event_count"] == 2
        assert shell("sync", "now") == 1
        assert "2 archived events were not delivered" in shell.capsys.readouterr().err
        assert shell.json("sync", "archive", "--restore", "--dry-run")["events"] == 2
        restored = shell.json("sync", "archive", "--restore")
        assert (restored["events"], restored["problems"]) == (2, {})
        assert drain(shell, RED)["complete"]
        assert [request.ids for request in new.requests] == [["e1", "e2"]]
    assert shell("sync", "archive", "--restore", "--older-than", "1h") == 2


def test_restoring_a_file_that_is_gone_exits_with_1_and_names_it(shell: Shell, hub: LocalTarget) -> None:
    shell.point_at(hub)
    capture(shell, "e1", RED)
    drain(shell, RED)
    [file] = shell.json("sync", "archive")["files"]
    Path(file).rename(shell.home / "elsewhere")
    assert list(shell.json("sync", "archive", "--restore", code=1)["problems"]) == [file]
    assert shell("sync", "archive", "--restore") == 1
    Path(shell.home / "elsewhere").rename(shell.home / Path(file).name)
    assert shell.json("sync", "archive", "--restore", "--to", str(shell.home))["events"] == 1


def test_the_audit_trail_can_be_read(shell: Shell, hub: LocalTarget) -> None:
    """D2: an opt-out that was refused, a retry by hand, a conflict that was settled."""
    shell.point_at(hub)
    assert shell("capture", "--type", "order.paid", "--payload", "1", "--id", "o1", "--opt-out", "--token", RED) == 0
    with local_target(answer(413)) as target:
        shell.point_at(target)
        drain(shell, RED, code=1)
    shell.clock.ahead(1000)
    shell.json("sync", "retry", "o1")
    entries = shell.json("sync", "audit")["entries"]
    assert [(one["what"], one["subject"]) for one in entries] == [("opt_out_refused", "o1"), ("retried_by_hand", "o1")]
    assert entries[0] | {"user_id": "me", "team_slug": "red", "at_ms": shell.clock() - 1000} == entries[0]
    assert len(shell.json("sync", "audit", "--limit", "1")["entries"]) == 1
    assert shell.json("sync", "audit", "nobody")["entries"] == []
    assert shell("sync", "audit", "o1") == 0
    assert "opt_out_refused" in shell.capsys.readouterr().out


def test_a_target_is_paused_in_every_journal(shell: Shell) -> None:
    shell.configure('[sync.targets.ci]\ntype = "stub"\n')
    for whose in (RED, BLUE):
        capture(shell, "e1", whose)
        drain(shell, whose)
    assert shell("sync", "targets", "--pause", "ci") == 0
    for whose in (RED, BLUE):
        shell.token = whose
        [ci] = [one for one in shell.json("sync", "now", code=1)["targets"] if one["target"] == "ci"]
        assert ci["blocked"] == "paused"


def keys(section: Any) -> set[str]:
    """Every key inside, but for those that are ids."""
    if isinstance(section, list):
        return {key for one in section for key in keys(one)}
    if not isinstance(section, dict):
        return set()
    values = section["by_target"].values() if "by_target" in section else ()
    inner = {key for name, one in section.items() if name != "by_target" for key in keys(one)}
    return set(section) | inner | {key for one in values for key in keys(one)}


def test_every_key_of_status_is_documented_and_the_targets_are_given_by_id_too(shell: Shell) -> None:
    """D11: names of the tools in use beside ours, the same facts under both."""
    old_queue(shell.home / "queue.db", note("e1", n=1), uploads=2, failures=1)
    old_queue(scoped(shell.home, "a"), note("e1", n=2))
    shell.json("sync", "migrate", code=1)
    capture(shell, "b1", BLUE)
    with local_target(answer(413)) as target:
        shell.point_at(target)
        drain(shell, RED, code=1)
    shell.environment["SPEC_KITTY_ENABLE_SAAS_SYNC"] = "0"
    drain(shell, RED, code=1)
    status = shell.json("sync", "status")
    text = DOCS.read_text()
    section = text[text.index("## Status for programs") : text.index("## For developers")]
    documented = set(re.findall(r"`(\w+)`", section))
    assert keys(status) - documented == set()
    [target_status] = status["delivery_targets"]
    assert status["delivery_ledger"]["by_target"] == {target_status["id"]: target_status}
    ledger, journal = status["delivery_ledger"], status["event_journal"]
    assert ledger["delivered_current_target"] == ledger["current_target_delivered_count"]
    assert ledger["rejected"] == ledger["by_status"]["rejected"]
    assert status["terminal_failures"]["events"] == status["terminal_failures"]["failures"]
    assert status["migration_conflicts"]["count"] == status["migration_conflicts"]["open_count"] == 1
    assert status["migration_conflicts"]["cleanup_blocked"]
    assert journal["journal_size_bytes"] == journal["retained_bytes"] > 0
    assert journal["oldest_retained_event_at"] == "2023-11-14T22:13:20+00:00"
    assert (journal["gc_suggested"], journal["gc_suggestion"]) == (False, None)
    uploads = status["body_upload_compatibility"]
    assert (uploads["body_upload_queue_count"], uploads["body_upload_failure_log_count"]) == (2, 1)
