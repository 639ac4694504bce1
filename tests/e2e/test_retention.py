"""Retention on a real stack: set through the door, shown by a dry run, pruned, and then told to every reader (C8).

And what is still known of a pruned hub that loses State and its index, once they are rebuilt.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from infra.openapi.streams import EXTENSION
from millrace.ledger.domain.names import Ledger
from tests.e2e.api import item
from tests.e2e.conftest import Hub
from tests.e2e.lake import EVENT, archived, done, eventually, operator, processed, sent, session_event
from tests.e2e.test_socket import opened

MILLRACE = str(Path(sys.executable).parent / "millrace")
OPERATOR = ["producer", "consumer", "operator"]


@pytest.fixture
def token() -> dict[str, Any]:
    return {"tenant": f"tenant-{uuid.uuid4().hex[:8]}", "roles": OPERATOR}


def read_to_the_end(hub: Hub, ledger: str, head: int) -> None:
    """Every consumer of the ledger, and compaction."""
    consumers = {"archive", "fan_out"} | ({"index"} if ledger.startswith("sync#") else set())
    state = operator(hub).state

    def caught_up() -> bool:
        cursors = state.marks(Ledger.to_read(ledger)).cursors
        return all(cursors.get(consumer, 0) >= head for consumer in consumers)

    eventually(caught_up, "a consumer did not get to the head")
    processed(hub)


def retain(hub: Hub, folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    return run_command(hub, folder, "retain", *options)


def run_command(hub: Hub, folder: Path, command: str, *options: str) -> tuple[int, dict[str, Any]]:
    hub.stack.write(folder / ".local")
    run = subprocess.run(
        [MILLRACE, command, "--json", *options], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.stdout, run.stderr
    told: dict[str, Any] = json.loads(run.stdout)
    return run.returncode, told


def planned(told: dict[str, Any], ledger: str) -> dict[str, Any]:
    (plan,) = (plan for plan in told["ledgers"] if plan["ledger"] == ledger)
    found: dict[str, Any] = plan
    return found


def test_the_door_takes_a_policy_and_tells_it(stack: Hub, token: dict[str, Any]) -> None:
    path = "/v1/retention/catalog/orders"
    nothing = {"advance_to": 0, "max_age_days": None, "max_events": None}
    told = done(sent(stack, "GET", path, **token))
    assert told == {"contract": "catalog", "scope": "orders", **nothing, "partitions": []}
    assert done(sent(stack, "PUT", path, {"max_age_days": 90}, **token)) == {**told, "max_age_days": 90}
    assert done(sent(stack, "GET", path, **token))["max_age_days"] == 90
    assert done(sent(stack, "PUT", path, {"max_age_days": None}, **token))["max_age_days"] is None


@pytest.mark.parametrize(
    ("path", "body", "claims", "status"),
    [
        ("sync/demo", {"max_age_days": 1}, {"roles": ["producer", "consumer"]}, 403),
        ("sync/other", {"max_age_days": 1}, {}, 403),
        ("catalog/orders", {"max_age_days": 1}, {"partitions": ["catalog:other"]}, 403),
        ("sync/demo", {"max_age_days": 0}, {}, 400),
        ("sync/demo", {}, {}, 400),
        ("audit/x", {"max_age_days": 1}, {}, 400),
        ("sync/demo", {"advance_to": 10**9}, {}, 400),
    ],
)
def test_the_door_refuses_what_it_must(
    stack: Hub, token: dict[str, Any], path: str, body: Any, claims: dict[str, Any], status: int
) -> None:
    response = sent(stack, "PUT", f"/v1/retention/{path}", body, **{**token, **claims})
    assert response.status_code == status, response.text
    assert response.json()["code"] in ("bad_request", "forbidden")


def test_sync_says_what_was_pruned_and_serves_the_rest(stack: Hub, token: dict[str, Any], tmp_path: Path) -> None:
    """S6, S13: an event that another partition needs stays."""
    ledger = f"sync#{token['tenant']}#demo"
    items = [item(f"e{n}", n, ["a", "b"] if n == 3 else ["a"]) for n in range(1, 7)]
    done(sent(stack, "POST", "/v1/projects/demo/submit_events", {"events": items}, **token))
    read_to_the_end(stack, ledger, 6)
    path = "/v1/retention/sync/demo"
    done(sent(stack, "PUT", path, {"partition": "a", "advance_to": 5}, **token))
    code, told = retain(stack, tmp_path, "--dry-run")
    assert code == 0
    assert planned(told, ledger)["goes"] == [[1, 2], [4, 5]]
    assert told["removed"] == 0
    code, told = retain(stack, tmp_path, "--yes")
    assert (code, planned(told, ledger)["removed"]) == (0, 4)
    plan = operator(stack).objects.get(f"{told['manifest']}plan-0000.json")
    assert plan is not None
    assert ledger in {one["ledger"] for one in json.loads(plan.data)}
    page = done(sent(stack, "POST", "/v1/projects/demo/sync", {"since_committed_id": 0}, **token))
    assert [event["committed_id"] for event in page["events"]] == [3, 6]
    assert page["pruned_through_committed_id"] == 5
    with opened(stack, "demo", **token) as socket:
        for partitions, events, lost in ((["a"], [3, 6], 5), (["b"], [3], None), (["b", "none"], [3], None)):
            asked = {"since_committed_id": 0, "partitions": partitions}
            page = done(sent(stack, "POST", "/v1/projects/demo/sync", asked, **token))
            assert [event["committed_id"] for event in page["events"]] == events
            assert page.get("pruned_through_committed_id") == lost, partitions
            assert socket.ask("sync", asked)["payload"] == page
    again = sent(stack, "PUT", path, {"partition": "a", "advance_to": 4}, **token)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    retried = done(sent(stack, "POST", "/v1/projects/demo/submit_events", {"events": items[:1]}, **token))
    assert retried["results"][0]["committed_id"] == 1, "S5: what was pruned is still known"


def test_a_poll_from_an_old_cursor_expires_and_starting_over_reports_the_gap(
    stack: Hub, token: dict[str, Any], tmp_path: Path
) -> None:
    """T9"""
    ledger = f"streams#{token['tenant']}#rt#main"
    done(sent(stack, "POST", "/v1/runtimes/rt/negotiate", {"supported_contract_versions": [2]}, **token))
    path = "/v1/runtimes/rt/streams/main/events"
    done(sent(stack, "POST", path, {"events": [{**EXTENSION, "event_id": f"e{n}"} for n in range(1, 7)]}, **token))
    cursor = done(sent(stack, "GET", f"{path}?max=2", **token))["next_cursor"]
    read_to_the_end(stack, ledger, 6)
    done(sent(stack, "PUT", "/v1/retention/streams/rt:main", {"advance_to": 4}, **token))
    code, told = retain(stack, tmp_path, "--yes")
    assert (code, planned(told, ledger)["removed"]) == (0, 4)
    expired = sent(stack, "GET", f"{path}?cursor={cursor}", **token)
    assert (expired.status_code, expired.json()["machine_code"]) == (410, "SDK_RUNTIME_CURSOR_EXPIRED")
    degraded = sent(stack, "GET", f"{path}?cursor={cursor}", **token)
    assert degraded.json()["machine_code"] == "SDK_RUNTIME_STREAM_DEGRADED"
    batch = done(sent(stack, "GET", path, **token))
    assert batch["dropped_count"] == 4
    assert [(event["event_type"], event["seq_no"]) for event in batch["events"]] == [
        ("StreamGap", 4),
        ("acme.battery.low", 5),
        ("acme.battery.low", 6),
    ]
    assert batch["events"][0]["payload"]["dropped_count"] == 4


def test_a_policy_for_all_sessions_prunes_the_oldest_of_each_and_changes_no_transcript(
    stack: Hub, token: dict[str, Any], tmp_path: Path
) -> None:
    """R8: one transcript was read before, the other never; both are whole after pruning."""
    for session in ("s1", "s2"):
        events = [session_event(f"{session}-{n}", session) for n in range(1, 25)]
        done(sent(stack, "POST", "/v1/realtime/events", {"events": events}, **token))
    before = done(sent(stack, "GET", "/v1/realtime/sessions/s1/transcript", **token))
    assert "prunedThrough" not in before
    names = [f"realtime#{token['tenant']}#{session}" for session in ("s1", "s2")]
    for name in names:
        read_to_the_end(stack, name, 24)
    done(sent(stack, "PUT", "/v1/retention/realtime/*", {"max_events": 2}, **token))
    code, told = retain(stack, tmp_path, "--yes")
    assert code == 0
    assert [planned(told, name)["removed"] for name in names] == [22, 22]
    page = done(sent(stack, "GET", "/v1/realtime/sessions/s2/events?afterSequence=0", **token))
    assert ([event["sequence"] for event in page["events"]], page["prunedThrough"]) == ([23, 24], 22)
    unsaid = session_event("s1-late", "s1")
    late = {**unsaid, "type": "transcript.partial", "ts": "2027-01-01T00:00:00Z"}
    late["payload"] = {**unsaid["payload"], "utteranceId": before["utterances"][0]["utteranceId"], "text": "late"}
    done(sent(stack, "POST", "/v1/realtime/events", late, **token))
    for session, path in (("s1", ""), ("s2", ""), ("s1", "?rebuild=true"), ("s2", "?rebuild=true")):
        transcript = done(sent(stack, "GET", f"/v1/realtime/sessions/{session}/transcript{path}", **token))
        assert (transcript["prunedThrough"], transcript["complete"], transcript["hasMore"]) == (22, True, False)
        assert len(transcript["utterances"]) == 24
        if session == "s1":
            assert transcript["utterances"] == before["utterances"]


def test_what_a_paused_target_has_not_got_stays_until_the_target_is_deleted(
    stack: Hub, token: dict[str, Any], tmp_path: Path
) -> None:
    """C8"""
    ledger = f"sync#{token['tenant']}#demo"
    chosen = {"type": "stub", "sources": [{"contract": "sync", "scope": "demo"}], "paused": True}
    done(sent(stack, "PUT", "/v1/targets/later", chosen, **token))
    items = [item(f"e{n}", n) for n in range(1, 5)]
    done(sent(stack, "POST", "/v1/projects/demo/submit_events", {"events": items}, **token))
    read_to_the_end(stack, ledger, 4)
    done(sent(stack, "PUT", "/v1/retention/sync/demo", {"advance_to": 4}, **token))
    _, told = retain(stack, tmp_path, "--dry-run")
    assert (planned(told, ledger)["held_by"], planned(told, ledger)["goes"]) == ("targets", [])
    done(sent(stack, "DELETE", "/v1/targets/later", **token))
    _, told = retain(stack, tmp_path, "--yes")
    assert planned(told, ledger)["removed"] == 4


def test_pruning_needs_a_word_when_nobody_can_be_asked(stack: Hub, token: dict[str, Any], tmp_path: Path) -> None:
    done(sent(stack, "POST", "/v1/projects/demo/submit_events", {"events": [item("x")]}, **token))
    read_to_the_end(stack, f"sync#{token['tenant']}#demo", 1)
    done(sent(stack, "PUT", "/v1/retention/sync/demo", {"advance_to": 1}, **token))
    code, told = retain(stack, tmp_path)
    assert (code, told["error"]["code"]) == (2, "usage")
    page = done(sent(stack, "POST", "/v1/projects/demo/sync", {"since_committed_id": 0}, **token))
    assert len(page["events"]) == 1


def throw_away(hub: Hub, table: str) -> int:
    """Every row of a table."""
    client, name = hub.client("dynamodb"), hub.tables[table]
    rows = [row for page in client.get_paginator("scan").paginate(TableName=name) for row in page["Items"]]
    for row in rows:
        client.delete_item(TableName=name, Key={"p": row["p"], "s": row["s"]})
    return len(rows)


def seen(hub: Hub, token: dict[str, Any], poll: str) -> dict[str, Any]:
    """What readers of every contract are told."""
    submitted = {"since_committed_id": 0}
    paths = {
        "replay": "/v1/realtime/sessions/s1/events",
        "transcript": "/v1/realtime/sessions/s1/transcript",
        "poll": poll,
        "markers": "/v1/runtimes/rt/markers",
        "deliveries": "/v1/targets/kept/deliveries",
        "target": "/v1/targets/kept",
    }
    answers = {name: done(sent(hub, "GET", path, **token)) for name, path in paths.items()}
    for partitions in (["a"], ["b"], ["a", "b"], None):
        asked = submitted if partitions is None else {**submitted, "partitions": partitions}
        answers[f"sync {partitions}"] = done(sent(hub, "POST", "/v1/projects/demo/sync", asked, **token))
    answers["poll"] = answers["poll"]["events"]
    answers["emitted"] = done(sent(hub, "GET", "/v1/realtime/metrics", **token))["emitted"]
    return answers


def test_a_hub_that_lost_state_and_index_is_rebuilt_and_says_what_it_cannot_know(
    stack: Hub, token: dict[str, Any], tmp_path: Path
) -> None:
    """S4, S5, S6, T6, M5, D4, C3: reads, cursors and deliveries are as before; nothing is archived or sent again."""
    tenant, demo, poll = token["tenant"], f"sync#{token['tenant']}#demo", "/v1/runtimes/rt/streams/main/events"
    chosen = {"type": "stub", "sources": [{"contract": "sync", "scope": "demo"}]}
    done(sent(stack, "PUT", "/v1/targets/kept", chosen, **token))
    items = [item(f"e{n}", n, ["a", "b"] if n % 3 == 0 else ["a"]) for n in range(1, 31)]
    for at in (0, 10, 20):
        done(sent(stack, "POST", "/v1/projects/demo/submit_events", {"events": items[at : at + 10]}, **token))
    talk = [session_event(f"{tenant}-{n}", "s1") for n in range(3)]
    done(sent(stack, "POST", "/v1/realtime/events", {"events": talk}, **token))
    agree = {"supported_contract_versions": [2]}
    done(sent(stack, "POST", "/v1/runtimes/rt/negotiate", agree, **token))
    done(sent(stack, "POST", poll, {"events": [{**EXTENSION, "event_id": f"e{n}"} for n in range(4)]}, **token))
    marker = {"label": "x", "position": {"lat": 1.0, "lon": 2.0}, "marker_id": "m1"}
    done(sent(stack, "POST", "/v1/runtimes/rt/markers", marker, **token))
    done(sent(stack, "POST", "/v1/catalog/orders/events", EVENT, **token))
    cursor = done(sent(stack, "GET", f"{poll}?max=1", **token))["next_cursor"]
    heads = {demo: 30, f"realtime#{tenant}#s1": 3, f"streams#{tenant}#rt#main": 4, f"streams#{tenant}#rt#markers": 1}
    heads[f"catalog#{tenant}#orders"] = 1
    for name, head in heads.items():
        read_to_the_end(stack, name, head)
    eventually(lambda: len(delivered(stack, token)) == 30, "the target did not get everything")
    done(sent(stack, "PUT", "/v1/retention/sync/demo", {"advance_to": 5}, **token))
    assert planned(retain(stack, tmp_path, "--yes")[1], demo)["removed"] == 5
    from_cursor = f"{poll}?cursor={cursor}"
    before = seen(stack, token, from_cursor)
    assert before["sync None"]["pruned_through_committed_id"] == 5

    assert throw_away(stack, "state") and throw_away(stack, "index")  # noqa: PT018
    code, refused = run_command(stack, tmp_path, "rebuild")
    assert (code, refused["error"]["code"]) == (2, "usage"), "it asks before it writes"
    _, dry = run_command(stack, tmp_path, "rebuild", "--dry-run")
    assert throw_away(stack, "index") == 0
    _, told = run_command(stack, tmp_path, "rebuild", "--yes")
    assert dry["counts"]["ledgers"] == told["counts"]["ledgers"] >= len(heads)
    assert not [name for finding in told["findings"].values() for name in finding["names"] if tenant in name]
    unknown = {one["what"] for one in told["unknown"]}
    assert {"retention policies", "realtime checkpoints", "negotiations", "break-glass grants"} <= unknown

    again = sent(stack, "GET", from_cursor, **token)
    assert again.json()["machine_code"] == "SDK_RUNTIME_INVALID_STATE", "told loudly, as the command says"
    done(sent(stack, "POST", "/v1/runtimes/rt/negotiate", agree, **token))
    assert seen(stack, token, from_cursor) == before
    marks = operator(stack).state.marks(Ledger.to_read(demo))
    assert (marks.floor, marks.cursors["index"], marks.cursors["archive"]) == (6, 30, 30)

    retried = done(sent(stack, "POST", "/v1/projects/demo/submit_events", {"events": items[:3]}, **token))
    assert [one["committed_id"] for one in retried["results"]] == [1, 2, 3]
    fresh = done(sent(stack, "POST", "/v1/projects/demo/submit_events", {"events": [item("new")]}, **token))
    assert fresh["results"][0]["committed_id"] == 31
    read_to_the_end(stack, demo, 31)
    eventually(lambda: len(delivered(stack, token)) == 31, "the target did not get the new event")
    lines = [(line["ledger"], line["sequence_position"]) for line in archived(stack, tenant)]
    lines = [line for line in lines if line[0] in heads]
    assert len(lines) == len(set(lines)) == sum(heads.values()) + 1, "each event is archived once"


def delivered(hub: Hub, token: dict[str, Any]) -> list[Any]:
    found: list[Any] = done(sent(hub, "GET", "/v1/targets/kept/deliveries?status=success", **token))["deliveries"]
    return found
