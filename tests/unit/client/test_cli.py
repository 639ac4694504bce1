"""The `millrace` command against a hub made of a function: what goes out, what is printed, how it ends."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from millrace.ledger.domain.access import Identity, team_partition
from millrace_client import local_stack
from millrace_client.commands import cli
from millrace_client.commands.connection import World
from millrace_client.commands.targets import describe
from millrace_client.sync.cursor_errors import CursorAhead
from millrace_client.sync.http import Client

URL = "https://hub.example"
SUBMIT = ["submit", "--project", "p", "--partition", "a", "--type", "note"]
ONE = [*SUBMIT, "--payload", "1"]

Answer = httpx.Response | Exception


class StubHub:
    """Gives the answers it was given, in order, then what `answer` makes of a request; keeps every body."""

    def __init__(self, *answers: Answer, answer: Callable[[Any], Any] | None = None) -> None:
        self.answers = list(answers)
        self.answer = answer or commit
        self.requests: list[httpx.Request] = []
        self.slept: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if not self.answers:
            return httpx.Response(200, json=self.answer(json.loads(request.content or "null")))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]

    def run(self, *arguments: str) -> int:
        world = World(httpx.MockTransport(self), self.slept.append)
        return cli.main([*arguments, "--url", URL, "--token", "T"], world)


def commit(body: Any) -> Any:
    return {"results": [{"id": event["id"], "status": "committed", "committed_id": 1} for event in body["events"]]}


def refusal(status: int, code: str, **headers: str) -> httpx.Response:
    body = {"code": code, "message": "because", "details": {"field": "x"}}
    return httpx.Response(status, json=body, headers=headers)


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No hub of the machine, and no setting of the person at it, gets in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MILLRACE_HOME", str(tmp_path / "home"))
    return tmp_path


def test_submit_sends_one_event_with_the_token_and_prints_its_position(capsys: pytest.CaptureFixture[str]) -> None:
    hub = StubHub()
    assert hub.run(*SUBMIT, "--partition", "b", "--payload", '{"x": [1]}', "--id", "e1") == 0
    [request] = hub.requests
    assert str(request.url) == f"{URL}/v1/projects/p/submit_events"
    assert request.headers["authorization"] == "Bearer T"
    assert hub.bodies == [
        {"events": [{"id": "e1", "partitions": ["a", "b"], "event": {"type": "note", "payload": {"x": [1]}}}]}
    ]
    assert "committed" in capsys.readouterr().out


def test_a_project_name_is_one_segment_of_the_path() -> None:
    hub = StubHub()
    assert hub.run("submit", "--project", "a/b?c", "--partition", "a", "--type", "t", "--payload", "1") == 0
    assert hub.requests[0].url.raw_path == b"/v1/projects/a%2Fb%3Fc/submit_events"


@pytest.mark.parametrize(
    "trouble",
    [refusal(429, "rate_limited"), refusal(503, "server_error"), httpx.ConnectError("no"), httpx.ReadError("lost")],
)
def test_a_retry_goes_out_under_the_same_id(trouble: Answer) -> None:
    hub = StubHub(trouble, trouble)
    assert hub.run(*ONE) == 0
    assert len(hub.requests) == 3
    assert hub.bodies[0] == hub.bodies[1] == hub.bodies[2]
    assert hub.bodies[0]["events"][0]["id"]


def test_retry_after_is_honoured_and_without_it_pauses_grow() -> None:
    named = StubHub(refusal(429, "rate_limited", **{"Retry-After": "7"}))
    assert named.run(*ONE) == 0
    assert named.slept == [7]
    unnamed = StubHub(*[refusal(503, "server_error")] * 4)
    assert unnamed.run(*ONE) == 0
    assert unnamed.slept == sorted(unnamed.slept)
    assert unnamed.slept[0] > 0


def test_many_events_go_in_batches_of_a_hundred_and_get_ids(nowhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [{"type": "note", "payload": number} for number in range(250)]
    lines[7] = {"id": "mine", "partitions": ["z"], "event": {"type": "t", "payload": None}, "meta": {"m": 1}}
    (nowhere / "events.ndjson").write_text("\n\n".join(map(json.dumps, lines)))
    hub = StubHub()
    assert hub.run("submit", "--project", "p", "--partition", "a", "--file", "events.ndjson", "--json") == 0
    assert [len(body["events"]) for body in hub.bodies] == [100, 100, 50]
    sent = [event for body in hub.bodies for event in body["events"]]
    assert len({event["id"] for event in sent}) == 250
    assert sent[7] == lines[7]
    assert sent[8]["partitions"] == ["a"]
    assert sent[8]["event"] == {"type": "note", "payload": 8}
    assert len(json.loads(capsys.readouterr().out)["results"]) == 250


def test_a_payload_comes_from_a_file_or_from_standard_input(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (nowhere / "payload.json").write_text('{"from": "file"}')
    monkeypatch.setattr("sys.stdin", io.StringIO('{"from": "stdin"}'))
    hub = StubHub()
    assert hub.run(*SUBMIT, "--payload", "@payload.json") == 0
    assert hub.run(*SUBMIT, "--payload", "-") == 0
    assert [body["events"][0]["event"]["payload"]["from"] for body in hub.bodies] == ["file", "stdin"]


def test_a_rejected_item_ends_with_1_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    errors = [{"field": "id", "message": "taken"}]
    result = {"id": "e", "status": "rejected", "reason": "validation_failed", "errors": errors}
    hub = StubHub(answer=lambda _: {"results": [result]})
    assert hub.run(*ONE, "--json") == 1
    assert json.loads(capsys.readouterr().out) == {"results": [result]}
    assert hub.run(*ONE) == 1
    assert "0 committed, 1 rejected" in capsys.readouterr().err


@pytest.mark.parametrize(("status", "code"), [(400, "bad_request"), (401, "auth_failed"), (403, "forbidden")])
def test_a_refused_request_ends_with_1_and_is_not_repeated(
    status: int, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hub = StubHub(refusal(status, code))
    assert hub.run(*ONE, "--json") == 1
    assert len(hub.requests) == 1
    output = capsys.readouterr()
    expected = {"code": code, "status": status, "message": "because", "details": {"field": "x"}}
    assert json.loads(output.out) == {"error": expected}
    assert output.err.splitlines()[0] == f"{code} ({status}): because"


def test_a_hub_that_stays_busy_ends_with_1_after_six_tries() -> None:
    hub = StubHub(*[refusal(429, "rate_limited")] * 20)
    assert hub.run(*ONE) == 1
    assert len(hub.requests) == 6


def test_a_hub_that_cannot_be_reached_ends_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    hub = StubHub(*[httpx.ConnectError("refused")] * 20)
    assert hub.run(*ONE) == 3
    assert capsys.readouterr().err.endswith(f"Cannot reach {URL}: refused\n")
    assert StubHub(httpx.Response(200, text="<html>")).run(*ONE) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["submit"],
        ["nonsense"],
        SUBMIT,
        [*SUBMIT, "--payload", "{"],
        [*SUBMIT, "--payload", "@missing.json"],
        ["submit", "--project", "p", "--file", "missing.ndjson"],
        [*ONE, "--file", "x"],
        ["pull", "--project", "p", "--since", "-1"],
    ],
)
def test_wrong_usage_ends_with_2_and_sends_nothing(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    hub = StubHub()
    assert hub.run(*arguments) == 2
    assert hub.requests == []
    assert "Traceback" not in capsys.readouterr().err


def page(events: list[int], next_since: int, has_more: bool) -> httpx.Response:
    def event(position: int) -> dict[str, Any]:
        content = {"type": "note", "payload": {"text": f"[b]{position}"}}
        return {"committed_id": position, "id": f"e{position}", "client_id": "C", "partitions": ["a"], "event": content}

    body = {"events": [event(position) for position in events], "next_since_committed_id": next_since}
    return httpx.Response(200, json=body | {"sync_to_committed_id": 9, "has_more": has_more, "partitions": ["a"]})


def test_pull_hands_the_cycle_from_page_to_page_until_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    """S17: pages until has_more is false."""
    hub = StubHub(page([3, 4], 4, True), page([8], 9, False))
    assert hub.run("pull", "--project", "p", "--partition", "a", "--since", "2", "--limit", "50", "--json") == 0
    assert hub.bodies == [
        {"since_committed_id": 2, "partitions": ["a"], "limit": 50},
        {"since_committed_id": 4, "partitions": ["a"], "limit": 50, "sync_to_committed_id": 9},
    ]
    output = capsys.readouterr()
    assert [json.loads(line)["committed_id"] for line in output.out.splitlines()] == [3, 4, 8]
    assert "--since 9; that is all" in output.err


def test_pull_reads_one_page_of_the_whole_project_if_it_is_told_to(capsys: pytest.CaptureFixture[str]) -> None:
    hub = StubHub(page([1], 1, True))
    assert hub.run("pull", "--project", "p", "--one-page") == 0
    assert hub.bodies == [{"since_committed_id": 0}]
    output = capsys.readouterr()
    assert "[b]1" in output.out
    assert "--since 1; there is more" in output.err


@pytest.mark.parametrize("more", [[], ["--one-page"], ["--json"]])
def test_pull_refuses_a_position_that_the_hub_has_not_reached_yet(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """S17: a cursor from the future; S8 is how the hub shows it."""
    hub = StubHub(page([], 12, False))
    assert hub.run("pull", "--project", "p", "--since", "12", *more) == 1
    output = capsys.readouterr()
    assert "cursor is at 12, but the hub's newest position is 9" in output.err
    assert "--resync" in output.err
    assert "Go on with" not in output.err
    assert StubHub(page([], 9, False)).run("pull", "--project", "p", "--since", "9", *more) == 0


def test_pull_reads_everything_again_if_it_is_told_to(capsys: pytest.CaptureFixture[str]) -> None:
    """S17: on a future cursor, a full re-sync is offered."""
    hub = StubHub(page([], 12, False), page([1], 9, False))
    assert hub.run("pull", "--project", "p", "--since", "12", "--resync", "--json") == 0
    assert [body["since_committed_id"] for body in hub.bodies] == [12, 0]
    assert json.loads(capsys.readouterr().out)["committed_id"] == 1


def test_a_client_that_pages_is_told_of_a_cursor_ahead() -> None:
    """S17"""
    with Client(URL, "T", transport=httpx.MockTransport(StubHub(page([], 12, False)))) as client:
        with pytest.raises(CursorAhead) as ahead:
            list(client.pages("p", since=12))
        assert (ahead.value.cursor, ahead.value.newest) == (12, 9)
    again = StubHub(page([], 12, False), page([1], 9, False))
    with Client(URL, "T", transport=httpx.MockTransport(again)) as client:
        [read] = client.pages("p", since=12, on_future_cursor="resync")
        assert [event["committed_id"] for event in read["events"]] == [1]


def test_pull_says_what_is_no_longer_kept_whichever_page_showed_it(capsys: pytest.CaptureFixture[str]) -> None:
    first = page([3], 3, True)
    pruned = httpx.Response(200, json=first.json() | {"pruned_through_committed_id": 2})
    assert StubHub(pruned, page([8], 9, False)).run("pull", "--project", "p") == 0
    assert "up to 2 are no longer kept" in capsys.readouterr().err


def test_a_store_remembers_how_far_pull_has_read(capsys: pytest.CaptureFixture[str]) -> None:
    """S17: the cursor moves when a page is printed, and not before."""
    reading = ["pull", "--project", "p", "--partition", "b", "--partition", "a", "--store", "s.db", "--json"]
    hub = StubHub(page([3, 4], 4, True), refusal(400, "bad_request"), page([8], 9, False), page([], 9, False))
    assert hub.run(*reading, "--since", "2") == 1, "it got as far as the second page"
    assert hub.run(*reading, "--since", "2") == 0
    assert hub.run(*reading) == 0
    assert [body["since_committed_id"] for body in hub.bodies] == [2, 4, 4, 9]
    assert [json.loads(line)["committed_id"] for line in capsys.readouterr().out.splitlines()[:2]] == [3, 4]
    elsewhere = StubHub(page([1], 9, False))
    assert elsewhere.run(*reading[:3], "--store", "s.db") == 0
    assert elsewhere.bodies[0]["since_committed_id"] == 0, "other partitions have a cursor of their own"


@pytest.mark.parametrize(
    "trouble", [httpx.ReadError("lost"), refusal(503, "server_error"), refusal(429, "rate_limited")]
)
def test_ids_that_were_made_up_are_kept_if_nobody_knows_whether_the_events_are_committed(
    trouble: Answer, nowhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """S17: a submit without a result is sent again under the same id."""
    lines = [{"type": "note", "payload": number} for number in range(150)]
    (nowhere / "events.ndjson").write_text("\n".join(map(json.dumps, lines)))
    hub = StubHub(httpx.Response(200, json={"results": [{"id": "x", "status": "committed"}] * 100}), *[trouble] * 6)
    assert hub.run("submit", "--project", "p", "--partition", "a", "--file", "events.ndjson") in (1, 3)
    [kept] = (nowhere / "home" / "unsent").iterdir()
    assert f"50 events have no result. They are in {kept}" in capsys.readouterr().err
    again = StubHub()
    assert again.run("submit", "--project", "p", "--file", str(kept)) == 0
    assert again.bodies[0] == hub.bodies[-1]


def test_nothing_is_kept_of_a_request_that_the_hub_refused_whole(nowhere: Path) -> None:
    assert StubHub(refusal(400, "bad_request")).run(*ONE) == 1
    assert not (nowhere / "home").exists()


def test_health_is_asked_once_and_without_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    hub = StubHub(httpx.Response(200, json={"status": "ok", "version": "1"}))
    world = World(httpx.MockTransport(hub), hub.slept.append)
    assert cli.main(["health", "--url", URL, "--json"], world) == 0
    assert json.loads(capsys.readouterr().out) == {"status": "ok", "version": "1"}
    assert "authorization" not in hub.requests[0].headers
    sick = StubHub(httpx.ConnectError("refused"))
    assert cli.main(["health", "--url", URL], World(httpx.MockTransport(sick), sick.slept.append)) == 3
    assert len(sick.requests) == 1


def target(**more: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("stuck", "paused", "paused_why", "drain", "blocked", "blocked_detail", "waits_since_ms"))
    counts = {"pending": 1, "rejected": 2, "transient": 3, "terminal_failed": 4}
    return {
        "target_id": "a",
        "delivered_count": 9,
        "deliveries": counts,
        "has_due": False,
        "due": [],
        **nothing,
        **more,
    }


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({}, "idle"),
        ({"stuck": "drain_died", "drain": {"holder": "me", "since_ms": 0}}, "stuck: drain_died"),
        ({"paused": True, "paused_why": "answered 410: gone"}, "paused: answered 410: gone"),
        ({"drain": {"holder": "me", "since_ms": 2_000}}, "drained by me for 7 s"),
        ({"blocked": "network_unavailable", "blocked_detail": "no connection"}, "blocked: no connection"),
        ({"waits_since_ms": 5_000}, "waits for its turn for 4 s"),
        ({"unsigned": True}, "idle, unsigned"),
        ({"has_due": True, "due": [{"contract": "sync", "scope": "demo"}]}, "due: sync demo"),
    ],
)
def test_a_target_is_described_by_what_matters_first(more: dict[str, Any], shown: str) -> None:
    """D11"""
    assert describe(target(**more), 9_000) == shown


def test_targets_shows_how_each_one_fares(capsys: pytest.CaptureFixture[str]) -> None:
    """D11"""
    hub = StubHub(httpx.Response(200, json={"delivery_targets": [target(stuck="drain_died")]}))
    world = World(httpx.MockTransport(hub), hub.slept.append)
    assert cli.main(["targets", "list", "--url", URL, "--token", "t"], world) == 0
    assert capsys.readouterr().out.split()[-6:] == ["a", "9", "6", "4", "stuck:", "drain_died"]
    assert str(hub.requests[0].url) == f"{URL}/v1/delivery/status"
    again = StubHub(httpx.Response(200, json={"delivery_targets": []}))
    world = World(httpx.MockTransport(again), again.slept.append)
    assert cli.main(["targets", "list", "--url", URL, "--token", "t", "--json"], world) == 0
    assert json.loads(capsys.readouterr().out) == {"delivery_targets": []}


def test_without_a_hub_the_command_says_how_to_get_one(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["health"], ONE, ["token", "--client", "c", "--team", "t"]):
        assert cli.main(arguments) == 2
        assert "make run" in capsys.readouterr().err


def test_a_hub_of_another_address_needs_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*ONE, "--url", URL]) == 2
    assert "--token" in capsys.readouterr().err


@pytest.fixture
def local_hub(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A stack file in a folder above, and the secret behind it."""
    stack = {"http_url": URL, "endpoint_url": "http://aws.example", "region": "r", "secret_arn": "arn"}
    (nowhere / ".local").mkdir()
    (nowhere / ".local" / "stack.json").write_text(json.dumps(stack | {"websocket_url": None}))
    (nowhere / "below").mkdir()
    monkeypatch.chdir(nowhere / "below")
    secret = "s" * 64
    monkeypatch.setattr(local_stack, "secret_of", lambda *_: secret)
    monkeypatch.setattr(local_stack, "answers", lambda _: True)
    return secret


def test_a_token_has_the_claims_the_hub_reads(local_hub: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["token", "--client", "C1", "--project", "a", "--project", "b", "--partition", "x*"]
    assert cli.main([*command, "--tenant", "T", "--ttl", "30m", "--role", "operator"]) == 0
    claims = jwt.decode(capsys.readouterr().out.strip(), local_hub, ["HS256"], audience="millrace", issuer="millrace")
    assert claims.pop("exp") - claims.pop("iat") == 1800
    assert claims == {
        "iss": "millrace",
        "aud": "millrace",
        "client_id": "C1",
        "tenant": "T",
        "projects": ["a", "b"],
        "partitions": ["x*"],
        "roles": ["operator"],
    }


def test_a_token_is_for_producers_and_consumers_unless_told_otherwise(
    local_hub: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["token", "--client", "C1", "--project", "a", "--partition", "*", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["claims"]["roles"] == ["producer", "consumer"]
    assert "tenant" not in answer["claims"]
    assert jwt.decode(answer["token"], local_hub, ["HS256"], audience="millrace") == answer["claims"]


def test_a_token_of_a_team_opens_its_journal_and_nothing_else(
    local_hub: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """D2: with a team_slug it passes the gate of a private Teamspace."""
    assert cli.main(["token", "--client", "laptop", "--team", "acme", "--json"]) == 0
    claims = json.loads(capsys.readouterr().out)["claims"]
    assert (claims["team_slug"], claims["partitions"], claims["projects"]) == ("acme", ["team:acme"], [])
    identity = Identity.of(claims)
    assert identity.reaches(team_partition("acme"))
    assert not identity.reaches("orders")


@pytest.mark.parametrize(
    ("partition", "partitions"), [("*", ["*"]), ("orders", ["orders", "team:acme"])], ids=["all", "one"]
)
def test_a_teams_token_may_open_projects_too(
    local_hub: str, partition: str, partitions: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--client", "C", "--team", "acme", "--project", "p", "--partition", partition]
    assert cli.main(["token", *arguments, "--json"]) == 0
    claims = json.loads(capsys.readouterr().out)["claims"]
    assert (claims["projects"], claims["partitions"]) == (["p"], partitions)


@pytest.mark.parametrize("ttl", ["", "12", "0h", "h", "-1h", "1w"])
def test_a_ttl_that_is_no_duration_is_refused(local_hub: str, ttl: str) -> None:
    assert cli.main(["token", "--client", "c", "--project", "p", "--partition", "*", f"--ttl={ttl}"]) == 2


def test_the_local_hub_is_found_and_gets_a_token_of_its_own(local_hub: str) -> None:
    hub = StubHub()
    assert cli.main(ONE, World(httpx.MockTransport(hub), hub.slept.append)) == 0
    [request] = hub.requests
    assert str(request.url).startswith(URL)
    token = request.headers["authorization"].removeprefix("Bearer ")
    assert jwt.decode(token, local_hub, ["HS256"], audience="millrace")["projects"] == ["p"]


def test_a_client_reads_a_cycle_as_pages() -> None:
    hub = StubHub(page([1], 1, True), page([2], 9, False))
    with Client(URL, "T", transport=httpx.MockTransport(hub)) as client:
        assert [page["next_since_committed_id"] for page in client.pages("p")] == [1, 9]


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        ('{"a": 1, "a": 2}', "same key twice"),
        ('{"a": NaN}', "NaN"),
        ('"\\ud800"', "lone surrogate"),
        ("{", "not JSON"),
        ("[" * 70 + "]" * 70, "deeper than 64"),
    ],
)
def test_a_payload_the_hub_would_refuse_is_refused_before_it_is_sent(
    payload: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hub = StubHub()
    assert hub.run(*SUBMIT, "--payload", payload) == 2
    assert says in capsys.readouterr().err
    assert hub.requests == []


def test_an_empty_id_is_a_mistake_and_not_a_wish_for_a_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert StubHub().run(*ONE, "--id", "") == 2
    assert "--id is empty" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--url", "ftp://x", "--token", "T"], ["--url", URL, "--token", "bög us"]])
def test_an_address_or_token_that_cannot_be_one_is_told_at_once(arguments: list[str]) -> None:
    assert cli.main([*ONE, *arguments], World(httpx.MockTransport(StubHub()))) == 2


@pytest.mark.parametrize("wrong", [["--client", ""], ["--role", "king"], ["--project", ""], ["--team", ""]])
def test_a_token_nobody_could_use_is_not_printed(local_hub: str, wrong: list[str]) -> None:
    assert cli.main(["token", "--client", "C", "--project", "p", "--partition", "*", *wrong]) == 2


@pytest.mark.parametrize("few", [[], ["--project", "p"], ["--partition", "*"], ["--team", "t", "--project", "p"]])
def test_a_token_that_opens_nothing_is_not_printed(
    local_hub: str, few: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["token", "--client", "C", *few]) == 2
    assert "--partition" in capsys.readouterr().err


def test_the_replacement_character_goes_out_escaped() -> None:
    hub = StubHub()
    assert hub.run(*SUBMIT, "--payload", '"\ufffd"') == 0
    assert b"\\ufffd" in hub.requests[0].content
    assert hub.bodies[0]["events"][0]["event"]["payload"] == "\ufffd"


def test_a_hub_that_nobody_runs_is_said_within_two_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    hub = StubHub(*[httpx.ConnectError("Connection refused")] * 9)
    assert hub.run(*ONE) == 3
    assert sum(hub.slept) < 2
    assert "Cannot reach" in capsys.readouterr().err


def test_ctrl_c_in_a_bulk_submit_says_what_was_committed_and_keeps_the_rest(
    nowhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(body: Any) -> Any:
        if len(hub.requests) > 1:
            raise KeyboardInterrupt
        return commit(body)

    lines = [json.dumps({"id": f"e{number}", "event": {"type": "t", "payload": 1}}) for number in range(150)]
    file = nowhere / "many.jsonl"
    file.write_text("\n".join(lines))
    hub = StubHub(answer=interrupted)
    assert hub.run("submit", "--project", "p", "--partition", "a", "--file", str(file)) == 130
    first = len(hub.bodies[0]["events"])
    assert f"{first} of 150 events are known to be committed" in capsys.readouterr().err
    [kept] = (nowhere / "home" / "unsent").iterdir()
    assert [json.loads(line)["id"] for line in kept.read_text().splitlines()] == [f"e{n}" for n in range(first, 150)]


def test_a_shell_completes_the_commands(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_MILLRACE_COMPLETE": "complete_bash", "COMP_WORDS": "millrace sub", "COMP_CWORD": "1"}.items():
        monkeypatch.setenv(name, value)
    assert cli.main([]) == 0
    assert capsys.readouterr().out.split() == ["submit"]
