"""D1: one server for everything a process does, decided before anything else."""

from __future__ import annotations

import dataclasses

import pytest

from millrace.delivery.domain.authority import (
    Bearer,
    ResolvedSyncTarget,
    TargetDisagreement,
    queue_scope,
    resolve,
    short_digest,
    sync_enabled,
    target_id,
)
from millrace.ledger.domain.errors import BadRequest

ME = Bearer("user-1", "acme")
ONE, OTHER = "https://one.example", "https://other.example"
SCOPE = "https://one.example|user-1|acme"


def resolved(
    configured: str | None = None, env: str | None = None, active: str | None = None, *, override: bool = False
) -> ResolvedSyncTarget:
    environment = {} if env is None else {"SPEC_KITTY_SAAS_URL": env}
    return resolve(
        configured=configured,
        environment=environment,
        identity=ME,
        active_queue_scope=active,
        home="/home/me/.spec-kitty",
        process_override=override,
    )


def test_it_has_the_nine_fields() -> None:
    assert [field.name for field in dataclasses.fields(ResolvedSyncTarget)] == [
        "configured_server_url",
        "env_server_url",
        "override_mode",
        "resolved_server_url",
        "user_id",
        "team_slug",
        "derived_queue_scope",
        "queue_db_path",
        "active_queue_scope_status",
    ]
    target = resolved(ONE)
    assert target.resolved_server_url == ONE
    assert (target.user_id, target.team_slug) == ("user-1", "acme")
    assert target.queue_db_path == f"/home/me/.spec-kitty/queues/queue-{short_digest(SCOPE)}.db"


@pytest.mark.parametrize("url", ["https://One.Example/Hub/", " https://one.example/Hub "])
def test_the_scope_and_the_queue_file_are_those_of_the_tools_in_use(url: str) -> None:
    """D1: `{url}|{user}|{team}`, trimmed, in lower case, the URL without its last slash; 16 hex digits of SHA-256."""
    target = resolve(
        configured=url,
        environment={},
        identity=Bearer(" Me@Example.com ", "ACME"),
        active_queue_scope="https://one.example/hub|me@example.com|acme",
        home="/h",
    )
    assert target.derived_queue_scope == "https://one.example/hub|me@example.com|acme"
    assert target.queue_db_path == "/h/queues/queue-5d3fe8adbfb9edcb.db"
    assert target.active_queue_scope_status == "matches"
    assert queue_scope(ONE, Bearer()) == "https://one.example||"


@pytest.mark.parametrize(
    ("other", "allowed"),
    [
        (Bearer(), True),
        (Bearer(None, "acme"), True),
        (Bearer("user-1", None), True),
        (Bearer("user-1", "acme"), False),
        (Bearer("user-2", "acme"), False),
        (Bearer("user-1", "blue"), False),
        (Bearer(None, "blue"), False),
        (Bearer("user-2", None), False),
        (Bearer(None, "ACME"), False),
    ],
)
def test_only_what_is_nobodys_or_half_known_and_agrees_is_taken_over(other: Bearer, allowed: bool) -> None:
    """D1: one team's facts never become another's."""
    assert ME.may_take_over(other) is allowed
    assert not Bearer().may_take_over(other)


def test_env_and_config_that_disagree_cannot_derive_a_scope_for_one_and_post_to_the_other() -> None:
    """Required: Env/config disagreement cannot derive queue scope for one target while posting to another."""
    with pytest.raises(TargetDisagreement):
        resolved(ONE, OTHER)
    target = resolved(ONE, OTHER, override=True)
    assert target.override_mode == "process_override"
    assert target.resolved_server_url == OTHER
    assert target.derived_queue_scope == queue_scope(OTHER, ME)
    assert (target.configured_server_url, target.env_server_url) == (ONE, OTHER)


@pytest.mark.parametrize("same", ["https://ONE.example/", "https://one.example:443", " https://one.example// "])
def test_two_spellings_of_one_server_agree(same: str) -> None:
    target = resolved(ONE, same)
    assert (target.override_mode, target.resolved_server_url) == ("none", ONE)
    assert resolved(same).derived_queue_scope == queue_scope(ONE, ME)


def test_only_an_environment_and_only_a_configuration_are_enough() -> None:
    assert (resolved(None, ONE).override_mode, resolved(None, ONE).resolved_server_url) == ("setup_only", ONE)
    assert (resolved(ONE).override_mode, resolved(ONE, "").resolved_server_url) == ("none", ONE)
    nothing = resolved()
    assert (nothing.resolved_server_url, nothing.derived_queue_scope, nothing.queue_db_path) == (None, None, None)


def test_a_stale_active_queue_scope_is_reported_and_ignored_as_authority() -> None:
    """Required: Stale active_queue_scope is reported and ignored as authority."""
    scope = queue_scope(ONE, ME)
    fresh, stale = resolved(ONE), resolved(ONE, active="0123456789abcdef")
    assert fresh.active_queue_scope_status == "absent"
    assert stale.active_queue_scope_status == "stale_non_authoritative"
    assert resolved(ONE, active=scope).active_queue_scope_status == "matches"
    assert dataclasses.replace(stale, active_queue_scope_status="absent") == fresh


@pytest.mark.parametrize(
    "url", ["one.example", "ftp://one.example", "https://", "https://u@one.example", "https://a:b"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadRequest):
        resolved(url)
    with pytest.raises(BadRequest):
        resolved(None, url)


def test_an_override_needs_something_to_override_with() -> None:
    with pytest.raises(BadRequest):
        resolved(ONE, override=True)


def test_server_user_and_team_each_make_another_scope_and_server_and_team_another_target() -> None:
    scopes = {queue_scope(url, Bearer(user, team)) for url in (ONE, OTHER) for user in "ab" for team in "xy"}
    assert len(scopes) == 8
    assert len({target_id("teamspace", url, team) for url in (ONE, OTHER) for team in "xy"}) == 4


@pytest.mark.parametrize(
    ("said", "enabled"), [(None, True), ("1", True), ("0", False), ("False", False), ("off", False)]
)
def test_sync_is_enabled_unless_the_environment_says_no(said: str | None, enabled: bool) -> None:
    environment = {} if said is None else {"SPEC_KITTY_ENABLE_SAAS_SYNC": said}
    assert sync_enabled(environment) is enabled
