"""Delivery on a whole hub: events in, targets out, and what an operator sees and does."""

from __future__ import annotations

import base64
import gzip
import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from tests.e2e.api import item, log_lines
from tests.e2e.conftest import Hub
from tests.e2e.receivers import Posted, Reply, accept, always, receiver

BATCH = "/api/v1/events/batch/"


def secret(letter: str) -> str:
    return "whsec_" + base64.b64encode(letter.encode() * 32).decode()


@dataclass
class Tenant:
    """A tenant of its own, with an operator's and a producer's rights."""

    hub: Hub
    name: str = field(default_factory=lambda: f"t-{uuid.uuid4().hex[:8]}")

    @property
    def journal(self) -> dict[str, str]:
        """Of the team that a token without one has."""
        return {"contract": "delivery", "scope": self.name}

    def headers(self, *roles: str) -> dict[str, str]:
        return self.hub.headers(tenant=self.name, roles=[*roles] or ["producer", "consumer", "operator"])

    def token(self) -> str:
        return self.hub.token(tenant=self.name)

    def post(self, path: str, body: Any = None) -> httpx.Response:
        return self.hub.http.post(path, json=body, headers=self.headers())

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.hub.http.get(path, params=query, headers=self.headers())

    def put(self, target_id: str, **body: Any) -> dict[str, Any]:
        response = self.try_to_put(target_id, **body)
        assert response.status_code == 200, response.text
        told: dict[str, Any] = response.json()
        return told

    def try_to_put(self, target_id: str, **body: Any) -> httpx.Response:
        whole = {"type": "external", "sources": [self.journal], "signing_secret": secret("a"), **body}
        chosen = {name: value for name, value in whole.items() if value is not None}
        return self.hub.http.put(f"/v1/targets/{target_id}", json=chosen, headers=self.headers())

    def ingest(self, *ids: str, **more: Any) -> list[dict[str, Any]]:
        events = [{"event_id": id_, "event_type": "note.added", **more} for id_ in ids]
        response = self.post(BATCH, {"events": events})
        assert response.status_code == 200, response.text
        results: list[dict[str, Any]] = response.json()["results"]
        return results

    def deliveries(self, target_id: str, **query: Any) -> dict[str, dict[str, Any]]:
        page = self.get(f"/v1/targets/{target_id}/deliveries", **query)
        assert page.status_code == 200, page.text
        return {one["event_id"]: one for one in page.json()["deliveries"]}

    def statuses(self, target_id: str) -> dict[str, str]:
        return {id_: one["status"] for id_, one in self.deliveries(target_id).items()}

    def until(self, condition: Callable[[], Any], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                status = self.get("/v1/delivery/status").text
                raise AssertionError(f"it did not come about; {status}\n{log_lines(self.hub, 'deliver')[-5:]}")
            time.sleep(0.05)


@pytest.fixture
def tenant(stack: Hub) -> Tenant:
    return Tenant(stack)


def test_a_has_what_it_was_given_when_b_has_had_its_turn(tenant: Tenant) -> None:
    """D6: A, then B with the same retained events, then A again, and nothing is sent twice."""
    with receiver() as first, receiver() as second:
        tenant.put("a", url=first.url)
        tenant.ingest("e1", "e2", "e3")
        tenant.until(lambda: len(first.ids) == 3)
        tenant.put("b", url=second.url)
        tenant.until(lambda: len(second.ids) == 3)
        assert tenant.post("/v1/targets/a/drain").json() == {"asked": True}
        tenant.ingest("e4")
        tenant.until(lambda: len(first.ids) >= 4 and len(second.ids) >= 4)
        assert first.ids == second.ids == ["e1", "e2", "e3", "e4"]
        tenant.until(lambda: set(tenant.statuses("a").values()) == {"success"})
        assert list(tenant.statuses("b")) == ["e1", "e2", "e3", "e4"]


def test_dead_and_hanging_targets_delay_no_other(tenant: Tenant) -> None:
    """D6"""
    released = threading.Event()

    def hang(posted: Posted) -> Reply:
        released.wait(60)
        return accept(posted)

    with receiver(always(500)) as dead, receiver(hang) as hanging, receiver() as well:
        try:
            for name, one in (("dead", dead), ("hanging", hanging), ("well", well)):
                tenant.put(name, url=one.url)
            for number in range(5):
                tenant.ingest(f"e{number}")
                tenant.until(lambda upto=number: len(well.ids) == upto + 1, 30)  # type: ignore[misc]
            assert not released.is_set()
            tenant.until(lambda: "transient" in tenant.statuses("dead").values())
            assert set(tenant.statuses("well").values()) == {"success"}
            told = tenant.get("/v1/targets/dead").json()
            assert told["failures_in_a_row"] >= 1
            assert told["blocked_detail"] == "answered 500"
        finally:
            released.set()


def test_410_pauses_a_target_and_a_put_lets_it_go_on(tenant: Tenant) -> None:
    """D8"""
    with receiver(always(410)) as gone:
        tenant.put("a", url=gone.url)
        tenant.ingest("e1")
        tenant.until(lambda: tenant.get("/v1/targets/a").json()["paused"])
        assert tenant.get("/v1/targets/a").json()["paused_why"] == "answered 410: gone"
        assert tenant.statuses("a") == {}
        assert tenant.post("/v1/targets/a/drain").status_code == 409
        tenant.ingest("e2")
        gone.script = accept
        tenant.put("a", url=gone.url, signing_secret=None)
        tenant.until(lambda: tenant.statuses("a") == {"e1": "success", "e2": "success"})


def test_a_paused_target_gets_everything_when_it_goes_on(tenant: Tenant) -> None:
    with receiver() as one:
        tenant.put("a", url=one.url, paused=True)
        tenant.ingest("e1", "e2")
        tenant.put("b", url=one.url)
        tenant.until(lambda: len(one.ids) == 2)
        tenant.put("a", url=one.url)
        tenant.until(lambda: sorted(one.ids) == ["e1", "e1", "e2", "e2"])


def test_a_target_that_starts_now_is_spared_the_past(tenant: Tenant) -> None:
    with receiver() as one:
        tenant.ingest("e1")
        tenant.put("a", url=one.url, start="now")
        tenant.ingest("e2")
        tenant.until(lambda: one.ids)
        assert one.ids == ["e2"]


def test_what_was_given_up_is_inspected_and_tried_again_by_hand(tenant: Tenant) -> None:
    """D4"""

    def too_large(posted: Posted) -> Reply:
        return (413, {}) if "big" in [event["event_id"] for event in posted.events] else accept(posted)

    with receiver(too_large) as one:
        tenant.put("a", url=one.url)
        tenant.ingest("e1", "big", "e3")
        tenant.until(lambda: len(tenant.statuses("a")) == 3)
        [failed] = tenant.deliveries("a", status="terminal_failed").values()
        assert (failed["event_id"], failed["error"]) == ("big", "answered 413: too large for the target")
        status = tenant.get("/v1/delivery/status").json()
        assert status["ok"] is False
        assert status["terminal_failures"]["failures"][0]["event_id"] == "big"
        one.script = accept
        assert tenant.post("/v1/targets/a/deliveries/big/retry").json()["retried"] is True
        tenant.until(lambda: tenant.statuses("a")["big"] == "success")
        assert tenant.post("/v1/targets/a/deliveries/big/retry").status_code == 409
        assert tenant.post("/v1/targets/a/deliveries/nobody/retry").status_code == 404
        tenant.until(lambda: tenant.get("/v1/delivery/status").json()["ok"])
        assert tenant.get("/v1/delivery/status").json()["delivery_ledger"]["current_target_delivered_count"] == 3


def test_webhooks_are_signed_and_a_replaced_secret_signs_on_for_a_while(tenant: Tenant) -> None:
    """D12: the published verifier accepts them."""
    with receiver(always(204)) as one:
        tenant.put("a", url=f"{one.url}/hook?x=1", mode="webhook", auth_secret="Basic abc")
        tenant.ingest("e1", "e2", text="é")
        tenant.until(lambda: len(one.posts) == 2)
        told = tenant.put("a", url=f"{one.url}/hook?x=1", mode="webhook", signing_secret=secret("b"))
        assert told["signing_secrets"] == 2
        ids = ["e1", "e2"]
        while not signs(one.posts[-1], "b"):  # a drain that began before goes on with what it began with
            ids.append(f"e{len(ids) + 1}")
            assert len(ids) < 20
            tenant.ingest(ids[-1])
            tenant.until(lambda: len(one.posts) == len(ids))
    assert all(signs(posted, "a") for posted in one.posts)
    for posted in one.posts[:2]:
        assert json.loads(posted.body)["text"] == "é"
        assert (posted.path, posted.headers["authorization"]) == ("/hook?x=1", "Basic abc")
    assert [posted.headers["webhook-id"] for posted in one.posts] == ids


def signs(posted: Posted, name: str) -> bool:
    try:
        Webhook(secret(name)).verify(posted.body, posted.headers)
    except WebhookVerificationError:
        return False
    return True


def test_one_hub_delivers_to_another(stack: Hub) -> None:
    """D8: two tenants of one stack; what comes out of one goes into the other, once and in order."""
    here, there = Tenant(stack), Tenant(stack)
    sources = [{"contract": "sync", "scope": "demo"}, here.journal]
    here.put("hub", type="teamspace", url=stack.http_url, auth_secret=there.token(), sources=sources)
    with receiver() as beyond:
        there.put("beyond", url=beyond.url)
        here.ingest("e1", "e2", number=1.5, big=2**60)
        submitted = here.post(
            "/v1/projects/demo/submit_events", {"events": [item("s1", {"n": 1}), item("s2", {"n": 2})]}
        )
        assert submitted.status_code == 200
        here.until(lambda: len(here.statuses("hub")) == 4)
        there.until(lambda: len(beyond.ids) == 4)
        assert set(here.statuses("hub").values()) == {"success"}
        got = {event["event_id"]: event for posted in beyond.posts for event in posted.events}
        assert got["e1"] == {"event_id": "e1", "event_type": "note.added", "number": 1.5, "big": 2**60}
        wrapped = got[f"delivery:{there.name}:sync%3Ademo%3As2"]
        assert (wrapped["event_type"], wrapped["idempotency_key"], wrapped["sequence_position"]) == ("sync.t", "s2", 2)
        assert wrapped["payload"]["event"] == {"type": "t", "payload": {"n": 2}}
        assert beyond.ids.index("e1") < beyond.ids.index("e2")
        assert {one["status"] for one in there.ingest("e1", "e2", number=1.5, big=2**60)} == {"duplicate"}


def test_neither_another_teams_id_nor_a_forged_one_stands_in_the_way_of_an_event(stack: Hub) -> None:
    """D6: two teams' equal ids are two events, and no id of a journal stands for an event that the hub names."""
    tenant = Tenant(stack)
    seen: set[str] = set()

    def once(posted: Posted) -> Reply:
        fresh = [event["event_id"] for event in posted.events if event["event_id"] not in seen]
        seen.update(fresh)
        status = {True: "success", False: "rejected"}
        results = [{"event_id": e["event_id"], "status": status[e["event_id"] in fresh]} for e in posted.events]
        return 200, {"results": results}

    with receiver(once) as one:
        sources = [{"contract": "delivery", "scope": "*"}, {"contract": "sync", "scope": "demo"}]
        assert tenant.put("a", url=one.url, sources=sources)["journal_ids"] == "scoped"
        for team in ("red", "blue"):
            events = [{"event_id": id_, "event_type": "t", "team": team} for id_ in ("e1", "sync:demo:order-1")]
            headers = stack.headers(tenant=tenant.name, team_slug=team, roles=["producer"])
            assert stack.http.post(BATCH, json={"events": events}, headers=headers).status_code == 200
        assert tenant.post("/v1/projects/demo/submit_events", {"events": [item("order-1", 1)]}).status_code == 200
        expected = {f"delivery:{team}:{id_}" for team in ("red", "blue") for id_ in ("e1", "sync%3Ademo%3Aorder-1")}
        tenant.until(lambda: seen == {*expected, "sync:demo:order-1"})
        tenant.until(lambda: tenant.statuses("a") == dict.fromkeys(seen, "success"))
        again = tenant.post(f"/v1/targets/a/deliveries/{quote('delivery:red:e1', safe='')}/retry")
        assert again.status_code == 409, again.text
        assert "This event is delivered" in again.text


def test_families_and_scopes_choose_what_a_target_gets(tenant: Tenant) -> None:
    with receiver() as one:
        tenant.put("a", url=one.url, sources=[{"contract": "sync", "scope": "demo"}], families=["sync.order."])
        tenant.ingest("j1")
        events = [
            {"id": f"s{n}", "partitions": ["p"], "event": {"type": kind, "payload": None}}
            for n, kind in enumerate(["order.paid", "note", "order.sent"])
        ]
        tenant.post("/v1/projects/demo/submit_events", {"events": events})
        tenant.until(lambda: len(one.ids) == 2)
        assert one.ids == ["sync:demo:s0", "sync:demo:s2"]


def test_a_reminder_wakes_what_is_due(tenant: Tenant) -> None:
    with receiver(always(503)) as one:
        tenant.put("a", url=one.url)
        tenant.ingest("e1")
        tenant.until(lambda: tenant.statuses("a") == {"e1": "transient"})
        due = tenant.deliveries("a")["e1"]["next_ms"]
        one.script = accept
        tenant.until(lambda: time.time() * 1000 > due)
        functions = tenant.hub.stack.functions
        answer = tenant.hub.client("lambda").invoke(FunctionName=functions["remind"])
        assert json.loads(answer["Payload"].read())["wakes"] >= 1
        tenant.until(lambda: tenant.statuses("a") == {"e1": "success"})


def test_a_deleted_target_is_served_no_more_and_goes_on_where_it_was_when_it_is_made_again(tenant: Tenant) -> None:
    with receiver() as one:
        tenant.put("a", url=one.url)
        tenant.ingest("e1")
        tenant.until(lambda: tenant.statuses("a") == {"e1": "success"})
        gone = tenant.hub.http.delete("/v1/targets/a", headers=tenant.headers())
        assert gone.json() == {"deleted": True}
        assert tenant.get("/v1/targets/a").status_code == 404
        assert tenant.get("/v1/targets").json() == {"targets": []}
        tenant.ingest("e2")
        tenant.put("a", url=one.url)
        tenant.until(lambda: tenant.statuses("a") == {"e1": "success", "e2": "success"})
        assert one.ids == ["e1", "e2"]


def test_no_secret_is_told_or_logged(tenant: Tenant) -> None:
    """D6"""
    with receiver() as one:
        told = tenant.put("a", url=one.url, auth_secret="Bearer hush-hush")
        tenant.ingest("e1")
        tenant.until(lambda: one.ids)
        shown = json.dumps([told, tenant.get("/v1/targets").json(), tenant.get("/v1/delivery/status").json()])
        logged = "\n".join(line for name in ("targets", "deliver") for line in log_lines(tenant.hub, name))
        rows = tenant.hub.client("dynamodb").scan(TableName=tenant.hub.tables["delivery"])
        for text in (shown, logged, str(rows)):
            assert "hush-hush" not in text
            assert secret("a").removeprefix("whsec_") not in text


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("type", {"type": "carrier-pigeon"}),
        ("url", {"url": None}),
        ("url", {"url": "ftp://example.com"}),
        ("url", {"url": "https://10.0.0.1/"}),
        ("url", {"url": "https://169.254.169.254/latest"}),
        ("url", {"url": "https://[::ffff:10.0.0.1]/"}),
        ("url", {"url": "https://2130706433/"}),
        ("url", {"url": "https://user@example.com/"}),
        ("url", {"type": "stub", "url": "https://8.8.8.8/"}),
        ("mode", {"mode": "sometimes"}),
        ("mode", {"mode": "webhook", "type": "teamspace"}),
        ("signing_secret", {"signing_secret": "whsec_short"}),
        ("auth_secret", {"type": "teamspace"}),
        ("auth_secret", {"auth_secret": "two\r\nlines"}),
        ("sources", {"sources": []}),
        ("sources", {"sources": None}),
        ("sources[0].contract", {"sources": [{"contract": "audit", "scope": "*"}]}),
        ("sources[0].scope", {"sources": [{"contract": "sync", "scope": ""}]}),
        ("sources[0]", {"sources": [{"contract": "sync"}]}),
        ("families", {"families": ["ok", ""]}),
        ("start", {"start": "yesterday"}),
        ("paused", {"paused": "yes"}),
        ("colour", {"colour": "red"}),
    ],
)
def test_a_bad_target_is_refused_with_its_field(tenant: Tenant, field: str, change: dict[str, Any]) -> None:
    response = tenant.try_to_put("a", **{"url": "https://example.com/hook", **change})
    assert (response.status_code, response.json()["details"]["field"]) == (400, field), response.text
    assert tenant.get("/v1/targets").json() == {"targets": []}


def test_only_an_operator_opens_these_doors(tenant: Tenant) -> None:
    http, headers = tenant.hub.http, tenant.headers("producer", "consumer")
    for method, path in [
        ("GET", "/v1/targets"),
        ("PUT", "/v1/targets/a"),
        ("GET", "/v1/targets/a"),
        ("DELETE", "/v1/targets/a"),
        ("POST", "/v1/targets/a/drain"),
        ("GET", "/v1/targets/a/deliveries"),
        ("POST", "/v1/targets/a/deliveries/e/retry"),
        ("GET", "/v1/delivery/status"),
    ]:
        body: Any = {} if method == "PUT" else None
        assert http.request(method, path, headers=headers, json=body).status_code == 403
        assert http.request(method, path, json=body).status_code == 401


def test_a_batch_is_answered_event_by_event(tenant: Tenant) -> None:
    """D8: one bad event hurts no neighbour."""
    good = {"event_id": "e1", "event_type": "t", "deep": {"a": [1, 2.5, None]}}
    events = [good, {"event_id": "", "event_type": "t"}, {"event_id": "e3"}, 7, good, {**good, "deep": 1}]
    response = tenant.post(BATCH, {"events": events})
    assert response.status_code == 200
    results = response.json()["results"]
    assert [(one["event_id"], one["status"]) for one in results] == [
        ("e1", "success"),
        (None, "rejected"),
        ("e3", "rejected"),
        (None, "rejected"),
        ("e1", "duplicate"),
        ("e1", "rejected"),
    ]
    assert [one["index"] for one in results if one["event_id"] is None] == [1, 3]
    assert [one["status"] for one in tenant.ingest("e1")] == ["rejected"], "the id has other content"


def test_a_batch_of_which_nothing_can_be_kept_is_a_400_with_details(tenant: Tenant) -> None:
    response = tenant.post(BATCH, {"events": [{"event_id": "e1"}, {"event_id": "e2", "event_type": " "}]})
    assert response.status_code == 400
    assert [one["event_id"] for one in response.json()["details"]] == ["e1", "e2"]


def packed(body: Any) -> bytes:
    return gzip.compress(json.dumps(body).encode())


@pytest.mark.parametrize(
    ("status", "kind", "content"),
    [
        (200, "application/octet-stream", packed({"events": [{"event_id": "e1", "event_type": "t"}]})),
        (400, "application/octet-stream", b"not gzip at all"),
        (400, "application/octet-stream", packed({"events": []})[:-4]),
        (400, "application/octet-stream", packed({"events": []}) * 2),
        (400, "application/octet-stream", packed({"events": [{}] * 1001})),
        (413, "application/octet-stream", gzip.compress(b" " * (64 * 1024 * 1024))),
        (200, "application/json", packed({"events": [{"event_id": "e1", "event_type": "t"}]})),
    ],
    ids=["good", "plain", "cut", "twice", "too_many", "too_large", "called_json"],
)
def test_compressed_batches(tenant: Tenant, status: int, kind: str, content: bytes) -> None:
    """D8: bombs are refused while they are unpacked."""
    headers = {**tenant.headers(), "content-type": kind, "content-encoding": "gzip"}
    response = tenant.hub.http.post(BATCH, content=content, headers=headers)
    assert response.status_code == status, response.text


def test_a_journal_is_open_to_its_producers_only(stack: Hub) -> None:
    body = {"events": [{"event_id": "e1", "event_type": "t"}]}
    for claims in ({"roles": ["consumer"]}, {"partitions": ["team:other"]}):
        assert stack.http.post(BATCH, json=body, headers=stack.headers(**claims)).status_code == 403
    reaching = stack.headers(partitions=["team:blue"], team_slug="blue", tenant="colours")
    assert stack.http.post(BATCH, json=body, headers=reaching).status_code == 200
    assert stack.http.post("/api/v1/events/other/", json=body, headers=reaching).status_code == 404


def test_the_receivers_of_these_tests_are_reached_by_a_setting_that_no_template_has(tenant: Tenant) -> None:
    """D12"""
    environment = tenant.hub.client("lambda").get_function_configuration(
        FunctionName=tenant.hub.stack.functions["deliver"]
    )["Environment"]["Variables"]
    assert "MILLRACE_LOOPBACK_TARGETS" not in environment
