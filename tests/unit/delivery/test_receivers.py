"""The three receivers against a local target that answers in every way of D8, and in some that nobody foresaw."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from standardwebhooks.webhooks import Webhook

from millrace.delivery.domain.addresses import Reach
from millrace.delivery.domain.outcomes import Response
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.signing import new_secret
from millrace.delivery.domain.states import Status
from millrace.delivery.ports.deliveries import DeliveryReceiver
from millrace.delivery.receivers.external import External
from millrace.delivery.receivers.inbox import StubInbox
from millrace.delivery.receivers.outbound import Outbound
from millrace.delivery.receivers.stub import Stub, stub_at
from millrace.delivery.receivers.teamspace import Teamspace
from tests.support.local_target import (
    Behaviour,
    LocalTarget,
    accept,
    answer,
    close,
    drip,
    endless,
    half,
    local_target,
    results,
    silent,
)
from tests.support.worlds import A, B, World, event, in_memory

HERE = Outbound(Reach(loopback=True), connect_s=5, total_s=0.4, most_answer_bytes=100_000)
PATIENT = Outbound(Reach(loopback=True), connect_s=5, total_s=30, most_answer_bytes=100_000)
NEVER_END = {"silence", "a slow drip of headers", "a slow drip of a body", "an endless body"}
SECRET = new_secret(b"s" * 32)

Make = Callable[[LocalTarget, World, Outbound], DeliveryReceiver]


def teamspace(target: LocalTarget, world: World, outbound: Outbound) -> DeliveryReceiver:
    return Teamspace(target.url, "token", outbound, lambda: None, world.clock)


def external(target: LocalTarget, world: World, outbound: Outbound) -> DeliveryReceiver:
    return External(target.url + "/hook", [SECRET], outbound, world.clock)


def stub(target: LocalTarget, world: World, outbound: Outbound) -> DeliveryReceiver:
    return Stub(stub_at(target.url, outbound), world.clock)


RECEIVERS: list[Make] = [teamspace, external, stub]

BOTH_ARRIVED = {"e1": "success", "e2": "success"}
BOTH_WAIT = {"e1": "transient", "e2": "transient"}
ANSWERS: dict[str, tuple[Sequence[Behaviour], dict[str, str]]] = {
    "success": ([accept], BOTH_ARRIVED),
    "accepted and warning": ([results(e1="accepted", e2="warning")], BOTH_ARRIVED),
    "duplicate": ([results(e1="duplicate", e2="success")], {"e1": "duplicate", "e2": "success"}),
    "pending and queued": ([results(e1="pending", e2="queued")], {"e1": "pending", "e2": "pending"}),
    "rejected": ([results(e1="rejected", e2="success")], {"e1": "rejected", "e2": "success"}),
    "one is missing": ([results(e2="success")], {"e1": "transient", "e2": "success"}),
    "an unknown status": ([results(e1="maybe", e2="success")], {"e1": "transient", "e2": "success"}),
    "unknown ids": ([results(x="success", y="rejected")], BOTH_WAIT),
    "in another order": ([results(e2="rejected", e1="success")], {"e1": "success", "e2": "rejected"}),
    "no answer": ([close], BOTH_WAIT),
    "half an answer": ([half], BOTH_WAIT),
    "silence": ([silent], BOTH_WAIT),
    "a slow drip of headers": ([drip(b"HTTP/1.1 200 OK\r\nX-Slow: ")], BOTH_WAIT),
    "a slow drip of a body": (
        [drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")],
        BOTH_WAIT,
    ),
    "an endless body": ([endless], BOTH_WAIT),
    "nonsense": ([lambda connection, request: connection.sendall(b"what?\r\n\r\n")], BOTH_WAIT),
    "not JSON": ([answer(200, b"<html>")], BOTH_WAIT),
    "wrong JSON": ([answer(200, {"results": {"e1": "success"}})], BOTH_WAIT),
    "packed although not asked for": (
        [answer(200, b"\x1f\x8b", **{"Content-Encoding": "gzip"})],
        BOTH_WAIT,
    ),
    "a redirect": ([answer(302, Location="http://127.0.0.1/")], BOTH_WAIT),
    **{
        str(status): ([answer(status)], BOTH_WAIT) for status in (401, 403, 404, 408, 412, 418, 429, 500, 502, 503, 504)
    },
    "400 with details": (
        [answer(400, {"details": [{"event_id": "e1", "error": "no"}]}), accept],
        {"e1": "rejected", "e2": "success"},
    ),
    "400 without": ([answer(400), answer(400), accept], {"e1": "rejected", "e2": "success"}),
    "413": ([answer(413), accept, answer(413)], {"e1": "success", "e2": "terminal_failed"}),
    "410": ([answer(410)], {}),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_equivalent_answers_leave_the_same_rows_for_all_three_receivers(name: str) -> None:
    """Required: Teamspace and stub receivers produce the same ledger state for equivalent result payloads. D8."""
    behaviours, expected = ANSWERS[name]
    left = []
    for make in RECEIVERS:
        world = in_memory()
        world.capture("e1", "e2")
        with local_target(*behaviours) as target:
            world.drain(make(target, world, HERE if name in NEVER_END else PATIENT))
        assert world.statuses() == expected
        left.append(
            ([(one.event_id, one.delivery) for one in world.deliveries.find(A.id, None)], world.states.get(A.id))
        )
    assert left[0] == left[1] == left[2]


@pytest.mark.parametrize("make", RECEIVERS)
def test_a_429_with_retry_after_holds_the_target_as_long_as_it_asks(make: Make) -> None:
    world = in_memory()
    world.capture("e1")
    with local_target(answer(429, b"", **{"Retry-After": "120"}), accept) as target:
        receiver = make(target, world, PATIENT)
        world.drain(receiver)
        world.clock.ahead(119_999)
        world.drain(receiver)
        assert len(target.requests) == 1
        world.clock.ahead(1)
        world.drain(receiver)
        assert len(target.requests) == 2
    assert world.statuses() == {"e1": "success"}


def test_the_batch_api_is_spoken_as_it_is_written() -> None:
    """D8: gzip JSON, the bytes of each event as captured, a bearer token for the Teamspace and none for the stub."""
    world = in_memory()
    world.capture("e1", text="é")
    world.capture("e2", n=1.50)
    with local_target(accept) as target:
        world.drain(teamspace(target, world, PATIENT), A)
        world.drain(stub(target, world, PATIENT), B)
    hosted, local = target.requests
    assert hosted.path == local.path == "/api/v1/events/batch/"
    assert hosted.headers["authorization"] == "Bearer token"
    assert "authorization" not in local.headers
    assert hosted.headers["content-encoding"] == "gzip"
    assert hosted.headers["content-type"] == "application/json"
    assert hosted.text == b'{"events":[' + event("e1", text="é") + b"," + event("e2", n=1.50) + b"]}"


@pytest.mark.parametrize("webhook", [False, True])
def test_the_published_verifier_accepts_what_an_external_target_receives(webhook: bool) -> None:
    """D12."""
    world = in_memory()
    world.clock.now_ms = int(time.time() * 1000)
    world.capture("e1", "e2")
    with local_target(accept if not webhook else answer(204)) as target:
        url = f"{target.url}/given?by=operator"
        receiver = External(url, [new_secret(b"n" * 32), SECRET], PATIENT, world.clock, "Basic abc", webhook)
        assert world.drain(receiver).complete
    assert world.statuses() == {"e1": "success", "e2": "success"}
    assert [request.path for request in target.requests] == ["/given?by=operator"] * (2 if webhook else 1)
    for request in target.requests:
        assert Webhook(SECRET).verify(request.text, request.headers)
        assert request.headers["authorization"] == "Basic abc"
    if webhook:
        assert [request.headers["webhook-id"] for request in target.requests] == ["e1", "e2"]
        assert target.requests[0].body == event("e1")


WEBHOOK_ANSWERS = {
    200: "success",
    202: "success",
    400: "rejected",
    413: "terminal_failed",
    500: "transient",
    302: "transient",
}


@pytest.mark.parametrize(("status", "expected"), WEBHOOK_ANSWERS.items())
def test_a_webhook_gets_one_event_per_post_and_any_2xx_is_success(status: int, expected: str) -> None:
    """D8."""
    world = in_memory()
    world.capture("e1")
    with local_target(answer(status, b"thanks")) as target:
        world.drain(External(target.url, [SECRET], PATIENT, world.clock, webhook=True))
    assert world.statuses() == {"e1": expected}


def test_an_external_target_without_url_is_blocked_and_sends_nothing() -> None:
    world = in_memory()
    world.capture("e1")
    assert world.drain(External("", [SECRET], HERE, world.clock)).blocked == "endpoint_missing"


@pytest.mark.parametrize("webhook", [False, True])
def test_an_external_target_without_a_secret_gets_its_events_unsigned(webhook: bool) -> None:
    """D12: the id of the request is there all the same, and no signature that would be none."""
    world = in_memory()
    world.capture("e1")
    with local_target(accept if not webhook else answer(204)) as target:
        assert world.drain(External(target.url, [], PATIENT, world.clock, webhook=webhook)).complete
    [request] = target.requests
    assert request.headers["webhook-id"] == "e1"
    assert "webhook-signature" not in request.headers
    assert world.statuses() == {"e1": "success"}


def test_nobody_listening_costs_no_attempt() -> None:
    world = in_memory()
    world.capture("e1")
    with local_target(accept) as target:
        pass
    assert world.drain(teamspace(target, world, HERE)).blocked == "network_unavailable"
    assert world.statuses() == {}


def test_a_fork_or_ci_runs_against_the_stub_with_no_credentials() -> None:
    """Required: Fork/CI test runs against stub with no Teamspace credentials."""
    world, inbox = in_memory(), StubInbox()
    world.capture("e1", "e2")
    receiver = Stub(inbox, world.clock)
    assert receiver.gate() is None
    assert world.drain(receiver).counts == {Status.SUCCESS: 2}
    assert list(inbox.events) == ["e1", "e2"]
    assert inbox.events["e1"] == json.loads(event("e1"))


def test_the_stub_knows_what_it_has_and_refuses_what_is_no_batch() -> None:
    inbox = StubInbox()
    body = b'{"events":[%s]}' % event("e1")
    assert json.loads(inbox(body).body) == {"results": [{"event_id": "e1", "status": "success"}]}
    assert json.loads(inbox(body).body) == {"results": [{"event_id": "e1", "status": "duplicate"}]}
    for bad in (b"", b"[]", b'{"events":[]}', b'{"events":[{}]}', b'{"events":[1]}'):
        assert inbox(bad).status == 400


def test_the_stub_in_process_and_on_localhost_leave_the_same_rows() -> None:
    said = {"results": [{"event_id": "e1", "status": "rejected"}, {"event_id": "e2", "status": "duplicate"}]}
    here, there = in_memory(), in_memory()
    for world in (here, there):
        world.capture("e1", "e2")
    here.drain(Stub(lambda body: Response(200, json.dumps(said).encode()), here.clock))
    with local_target(answer(200, said)) as target:
        there.drain(stub(target, there, PATIENT))
    assert here.deliveries.find(A.id, None) == there.deliveries.find(A.id, None)


CALL = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize("make", [teamspace, external])
def test_events_of_one_call_go_out_with_its_traceparent(make: Make) -> None:
    """Those of several calls have no common one; bodies are as ever."""
    one, two = (Pick(number, f"e{number}", b'{"event_id":"e%d"}' % number, trace=CALL) for number in (1, 2))
    other = replace(two, trace=CALL.replace("4bf9", "ffff"))
    with local_target(accept) as target:
        receiver = make(target, in_memory(), PATIENT)
        for picks in ([one, two], [one], [one, other], [one, replace(two, trace="")], [replace(two, trace="")]):
            results = receiver.deliver(picks).results
            assert [results[pick.event_id].status for pick in picks] == [Status.SUCCESS] * len(picks)
        headers = [request.headers.get("traceparent") for request in target.requests]
    assert headers == [CALL, CALL, None, None, None]


def test_a_webhook_has_the_traceparent_of_its_event() -> None:
    with local_target(answer(204)) as target:
        hook = External(target.url + "/hook", [SECRET], PATIENT, in_memory().clock, webhook=True)
        hook.deliver([Pick(1, "e1", b'{"event_id":"e1"}', trace=CALL)])
        assert target.requests[0].headers["traceparent"] == CALL
