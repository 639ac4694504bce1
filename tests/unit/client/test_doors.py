"""The client's faces of realtime, the catalog and the operator's doors: what they ask, and how they go on."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import httpx
import pytest

from millrace_client import Catalog, Client, Operator, Realtime, Refused, SessionGapped

Asked = list[tuple[str, str, Any]]
Hub = TypeVar("Hub", bound=Client)


def at(kind: type[Hub], *answers: dict[str, Any], status: int = 200) -> tuple[Hub, Asked]:
    asked, left = Asked(), list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        asked.append((request.method, request.url.raw_path.decode(), body))
        return httpx.Response(status, json=left.pop(0))

    return kind("http://hub", "token", transport=httpx.MockTransport(answer)), asked


def page(*sequences: int, more: bool = False, pruned: int | None = None) -> dict[str, Any]:
    return {"events": [{"sequence": one} for one in sequences], "hasMore": more, "prunedThrough": pruned}


def test_a_session_is_replayed_by_sequence_to_its_end() -> None:
    hub, asked = at(Realtime, page(3, 4, more=True), page(5))
    with hub:
        assert [event["sequence"] for event in hub.replay("call/7", after=2)] == [3, 4, 5]
    paths = [f"/v1/realtime/sessions/call%2F7/events?afterSequence={after}" for after in (2, 4)]
    assert [path for _, path, _ in asked] == paths


def test_a_replay_over_pruned_events_is_an_error_and_not_a_jump() -> None:
    hub, _ = at(Realtime, page(5, pruned=4))
    with hub, pytest.raises(SessionGapped, match="Events 1 to 4 of s are no longer kept; read on after 4"):
        list(hub.replay("s"))


def test_events_are_published_alone_and_together() -> None:
    hub, asked = at(Realtime, {"ok": True, "deduped": False}, {"ok": True, "results": [{"ok": True}]})
    with hub:
        assert hub.publish({"eventId": "a"})["deduped"] is False
        assert hub.publish_many([{"eventId": "a"}]) == [{"ok": True}]
    assert [body for _, _, body in asked] == [{"eventId": "a"}, {"events": [{"eventId": "a"}]}]


def test_a_checkpoint_names_all_of_the_place() -> None:
    hub, asked = at(Realtime, {"ok": True, "applied": False})
    with hub:
        assert not hub.checkpoint("s", "ui", {"eventId": "e", "ts": "T", "sequence": 9})
    body = {"consumerId": "ui", "watermarkTs": "T", "watermarkEventId": "e", "watermarkSequence": 9}
    assert asked == [("POST", "/v1/realtime/sessions/s/checkpoint", body)]


def test_a_long_transcript_is_read_to_its_end() -> None:
    first = {"sequence": 9, "utterances": [{"utteranceId": "u1", "startMs": 5}], "hasMore": True}
    hub, asked = at(Realtime, first, {"sequence": 9, "utterances": [{"utteranceId": "u2"}], "hasMore": False})
    with hub:
        assert [one["utteranceId"] for one in hub.transcript("s")["utterances"]] == ["u1", "u2"]
    assert asked[1][1].endswith("?afterStartMs=5&afterUtteranceId=u1")


def test_what_is_wrong_with_an_event_is_among_the_details() -> None:
    errors = [{"pointer": "/payload/callId", "message": "is missing"}]
    body = {"ok": False, "code": "INVALID_REALTIME_EVENT", "message": "no", "errors": errors, "retryable": False}
    hub, _ = at(Realtime, body, status=400)
    with hub, pytest.raises(Refused) as raised:
        hub.publish({})
    assert (raised.value.code, raised.value.details["errors"]) == ("INVALID_REALTIME_EVENT", errors)


def test_an_error_of_the_streams_contract_keeps_its_code() -> None:
    hub, _ = at(Operator, {"machine_code": "SDK_SECURITY_AUTHZ_DENIED", "message": "no"}, status=403)
    with hub, pytest.raises(Refused) as raised:
        hub.grants.list("r")
    assert raised.value.code == "SDK_SECURITY_AUTHZ_DENIED"


def test_a_domain_is_put_to_and_read_by_position() -> None:
    pages = [{"events": [{"position": 1}], "next_after": 1, "head": 2}, {"events": [], "next_after": 2, "head": 2}]
    hub, asked = at(Catalog, {"sequence_position": 1}, {"results": [{"status": "committed"}]}, *pages)
    with hub:
        assert hub.put("or/ders", {"event_type": "a"}) == {"sequence_position": 1}
        assert hub.put_many("orders", [{}]) == [{"status": "committed"}]
        assert list(hub.read("orders", kind="a")) == [{"position": 1}]
    read = [f"/v1/ledgers/catalog/orders/events?after={after}&type=a" for after in (0, 1)]
    assert [path for _, path, _ in asked] == ["/v1/catalog/or%2Fders/events", "/v1/catalog/orders/events", *read]


def test_a_replay_to_a_target_goes_on_until_nothing_is_left() -> None:
    hub, asked = at(Operator, {"replayed": 1000, "next": 1001}, {"replayed": 3, "next": None})
    with hub:
        steps = list(hub.targets.replay("archive", "sync", "demo", 1, 1003, until_ms=7))
    assert sum(step["replayed"] for step in steps) == 1003
    assert [body["from_position"] for _, _, body in asked] == [1, 1001]
    same = {"contract": "sync", "scope": "demo", "to_position": 1003, "until_ms": 7, "dry_run": False}
    assert all(body.items() >= same.items() for _, _, body in asked)


def test_profiles_are_listed_to_the_end_and_those_of_the_deployment_last() -> None:
    one = {"project": "b", "profile": "canonical", "set_by": "operator"}
    other = {**one, "project": "c/d"}
    pages: list[dict[str, Any]] = [
        {"profiles": [one], "deployment": {"a": "open", "c/d": "open"}, "next_after": "b"},
        {"profiles": [other], "deployment": {}, "next_after": None},
    ]
    hub, asked = at(Operator, *pages, other, one)
    with hub:
        deployed = {"project": "a", "profile": "open", "set_by": "deployment"}
        assert list(hub.profiles.list()) == [one, other, deployed]
        assert hub.profiles.get("c/d") == other
        hub.profiles.put("b", None)
    assert asked[1][1] == "/v1/profiles?after=b"
    assert asked[2:] == [
        ("GET", "/v1/projects/c%2Fd/profile", None),
        ("PUT", "/v1/projects/b/profile", {"profile": None}),
    ]


def test_one_delivery_is_tried_again_by_its_id() -> None:
    hub, asked = at(Operator, {"retried": True}, {"targets": []})
    with hub:
        hub.targets.retry("a", "sync:demo:order/17")
        hub.targets.status()
    assert asked[0][:2] == ("POST", "/v1/targets/a/deliveries/sync%3Ademo%3Aorder%2F17/retry")
    assert asked[1][:2] == ("GET", "/v1/delivery/status")


def test_a_grant_is_made_once_read_to_its_end_and_revoked() -> None:
    pages: list[dict[str, Any]] = [
        {"entries": [{"seq_no": 1}], "next_after": "x"},
        {"entries": [{"seq_no": 2}], "next_after": None},
    ]
    answers: list[dict[str, Any]] = [{"grant_id": "g"}, *pages, {}]
    hub, asked = at(Operator, *answers)
    with hub:
        hub.grants.make("pi-7", "ticket", 600, fields=["peer_id"])
        assert [one["seq_no"] for one in hub.grants.read("pi-7", "g")] == [1, 2]
        hub.grants.revoke("pi-7", "g")
    base = "/v1/runtimes/pi-7/diagnostics"
    assert asked == [
        ("POST", f"{base}/grants", {"reason": "ticket", "ttl_s": 600, "scope": {"fields": ["peer_id"]}}),
        ("GET", f"{base}/g", None),
        ("GET", f"{base}/g?after=x", None),
        ("DELETE", f"{base}/grants?grant_id=g", None),
    ]


def test_a_grant_that_may_have_been_made_is_not_asked_for_twice() -> None:
    hub, asked = at(Operator, {"machine_code": "SDK_INTERNAL_UNAVAILABLE", "message": "later"}, status=503)
    with hub, pytest.raises(Refused):
        hub.grants.make("pi-7", "ticket", 600)
    assert len(asked) == 1


def test_how_a_hub_stands_is_asked_for_page_by_page() -> None:
    answers: list[dict[str, Any]] = [
        {"problems": []},
        {"connections": [{"connection": "1"}], "next": "c"},
        {"connections": [{"connection": "2"}], "next": None},
        {"degraded": [], "gaps": [], "next": None},
    ]
    hub, asked = at(Operator, *answers)
    with hub:
        standing = hub.standing
        assert standing.overview() == {"problems": []}
        assert [one["connection"] for one in standing.connections("demo")] == ["1", "2"]
        assert [one["gaps"] for one in standing.degraded("r/1")] == [[]]
    assert [path for _, path, _ in asked] == [
        "/v1/overview",
        "/v1/connections?project=demo",
        "/v1/connections?project=demo&after=c",
        "/v1/runtimes/r%2F1/degraded",
    ]


def test_quarantine_is_listed_repaired_and_driven_again() -> None:
    answers: list[dict[str, Any]] = [
        {"entries": [{"id": "a"}], "next": "x"},
        {"entries": [{"id": "b"}], "next": None},
        {"redriven": {"a": "o1"}, "next": "y"},
        {"redriven": {"b": "o2"}, "next": None},
        {"redriven": {"a": "o3"}},
    ]
    hub, asked = at(Operator, *answers)
    with hub:
        assert [one["id"] for one in hub.quarantine.list("unknown_version", every=True)] == ["a", "b"]
        assert list(hub.quarantine.redrive_all("unknown_version")) == [{"a": "o1"}, {"b": "o2"}]
        assert hub.quarantine.repair("a", [{"payload": 1}]) == {"a": "o3"}
    assert asked[1][1] == "/v1/quarantine?reason=unknown_version&all=true&after=x"
    assert asked[3] == ("POST", "/v1/quarantine/redrive", {"reason": "unknown_version", "after": "y"})
    assert asked[4] == ("POST", "/v1/quarantine/a/repair", {"lines": [{"payload": 1}]})
