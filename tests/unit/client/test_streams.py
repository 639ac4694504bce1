"""The streams client: negotiation, emitting under kept ids, and the hub's errors as exceptions."""

from __future__ import annotations

import json
import math
from typing import Any

import httpx
import pytest

from millrace_client.errors import Refused, Unreachable, Usage
from millrace_client.streams.negotiation import Limits
from millrace_client.streams.runtime import Runtime
from millrace_client.streams.sdk_errors import (
    Conflict,
    CursorExpired,
    Emitted,
    NoAnswer,
    Rejected,
    SdkError,
    StreamDegraded,
)
from tests.unit.client.fake_streams import URL, FakeStreams, Json, Lost, No, run

EVENT: Json = {"event_type": "DeliveryTrace", "source_component": "router", "payload": {"hop": 1}}
DOWN = httpx.ConnectError("nobody listens")
LIMITED = "SDK_SECURITY_RATE_LIMITED"
AWAY = "SDK_INTERNAL_UNAVAILABLE"


def bodies(hub: FakeStreams) -> list[Any]:
    return [json.loads(request.content) for request in hub.asked("POST", "/events")]


def sent_ids(hub: FakeStreams) -> list[list[str]]:
    return [[event["event_id"] for event in body["events"]] for body in bodies(hub)]


def test_negotiation_tells_what_was_agreed_on() -> None:
    """T5"""

    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            agreed = await runtime.negotiate("embedded-alloc", {"max_poll_events": 40}, ["sdk.capability.x"])
            assert runtime.negotiated == agreed
        assert (agreed.runtime_id, agreed.active_contract_version) == ("r/1", 2)
        assert agreed.effective_capabilities == ("sdk.capability.x",)
        assert agreed.effective_limits == Limits(40, 65_536, 1_048_576, 32)
        assert (agreed.contract_release, agreed.schema_namespace) == ("v2.5", "v2")
        assert json.loads(hub.requests[0].content) == {
            "supported_contract_versions": [2],
            "requested_capabilities": ["sdk.capability.x"],
            "profile": "embedded-alloc",
            "limits": {"max_poll_events": 40},
        }

    run(test())


def test_status_asks_for_a_rebuild_only_when_told_to() -> None:
    async def test() -> None:
        async with FakeStreams().runtime() as runtime:
            assert (await runtime.status())["rebuilt"] is None
            assert (await runtime.status(rebuild=True))["rebuilt"] == "true"

    run(test())


def test_an_event_is_completed_with_what_it_does_not_say_itself() -> None:
    """T1"""

    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            stream = runtime.stream("s 1")
            assert await stream.emit(EVENT) == Emitted("id-1", 1, deduped=False)
            await stream.emit(EVENT | {"event_id": "mine", "severity": "warn", "ts_ms": 5, "contract_version": 3})
        assert bodies(hub) == [
            EVENT
            | {"event_id": "id-1", "runtime_id": "r/1", "stream_id": "s 1", "severity": "info"}
            | {"contract_version": 2, "ts_ms": 1700000000123},
            EVENT
            | {"event_id": "mine", "runtime_id": "r/1", "stream_id": "s 1", "severity": "warn"}
            | {"contract_version": 3, "ts_ms": 5},
        ]
        assert EVENT.keys() == {"event_type", "source_component", "payload"}

    run(test())


def test_the_negotiated_version_is_the_one_events_carry() -> None:
    async def test() -> None:
        hub = FakeStreams()
        newer = {"active_contract_version": 7, "effective_capabilities": [], "contract_release": "v", "runtime_id": "r"}
        limits = {"max_poll_events": 1, "max_event_bytes": 1, "max_batch_bytes": 1, "max_extension_keys": 1}
        hub.trouble.append(
            httpx.Response(200, json=newer | {"effective_limits": limits, "schema_namespace": "v7"}),
        )
        async with hub.runtime() as runtime:
            await runtime.negotiate()
            assert runtime.stream("s 1").draft(EVENT)["contract_version"] == 7

    run(test())


@pytest.mark.parametrize(
    "trouble",
    [
        No(LIMITED).response(**{"Retry-After": "7"}),
        No(AWAY).response(**{"Retry-After": "7"}),
        httpx.Response(503, json={"message": "Service Unavailable"}, headers={"Retry-After": "7"}),
        httpx.Response(502, text="<html>", headers={"Retry-After": "7"}),
        DOWN,
        Lost(),
    ],
    ids=["429", "503", "gateway 503", "proxy 502", "no connection", "answer lost"],
)
def test_what_may_succeed_later_is_sent_again_as_it_was(trouble: httpx.Response | Exception) -> None:
    """T3: under the same id, so that what the hub did before its answer was lost is deduped."""

    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.append(trouble)
        async with hub.runtime() as runtime:
            emitted = await runtime.stream("s 1").emit(EVENT)
        assert emitted == Emitted("id-1", 1, deduped=isinstance(trouble, Lost))
        first, second = bodies(hub)
        assert first == second
        assert hub.naps == [7.0 if isinstance(trouble, httpx.Response) else 0.5]

    run(test())


def test_pauses_grow_until_attempts_run_out_and_the_error_says_what_to_send_again() -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.extend([No(AWAY).response() for _ in range(4)])
        async with hub.runtime(attempts=4) as runtime:
            stream = runtime.stream("s 1")
            with pytest.raises(SdkError) as caught:
                await stream.emit(EVENT)
            assert hub.naps == [0.5, 1.0, 2.0]
            assert (caught.value.status, caught.value.retryable, caught.value.attempts) == (503, True, 4)
            assert caught.value.progress is not None
            [again] = caught.value.progress.unsettled
            assert await stream.emit(again) == Emitted("id-1", 1, deduped=False)
        assert bodies(hub)[0] == bodies(hub)[-1]

    run(test())


def test_a_refusal_is_not_tried_again() -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.append(No("SDK_RUNTIME_INVALID_STATE").response())
        async with hub.runtime() as runtime:
            with pytest.raises(SdkError, match="SDK_RUNTIME_INVALID_STATE"):
                await runtime.stream("s 1").emit(EVENT)
        assert len(hub.requests) == 1
        assert hub.naps == []

    run(test())


def test_a_list_has_one_result_per_event_in_order() -> None:
    """T3, T12: a bad event does not touch its neighbours."""

    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            stream = runtime.stream("s 1")
            draft = stream.draft(EVENT | {"event_id": "known"})
            await stream.emit(draft)
            results = await stream.emit(
                [EVENT, EVENT | {"seq_no": 4}, draft, draft | {"severity": "error"}, EVENT | {"event_id": "last"}]
            )
            assert await stream.emit([]) == []
        assert [type(result) for result in results] == [Emitted, Rejected, Emitted, Rejected, Emitted]
        assert results[0] == Emitted("id-1", 2, deduped=False)
        assert results[2] == Emitted("known", 1, deduped=True)
        assert results[4] == Emitted("last", 3, deduped=False)
        refused, taken = results[1], results[3]
        assert isinstance(refused, Rejected)
        assert isinstance(taken, Rejected)
        assert (refused.event_id, refused.error.status) == ("id-2", 400)
        assert refused.error.details == {"field": "seq_no"}
        assert isinstance(taken.error, Conflict)
        assert (taken.error.status, taken.error.details) == (409, {"domain": "event"})

    run(test())


def test_only_the_events_that_may_succeed_later_are_sent_again() -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.item_trouble["b"].extend([No(AWAY), No(LIMITED)])
        hub.item_trouble["c"].append(No("SDK_VALIDATION_INVALID_ARGUMENT"))
        async with hub.runtime() as runtime:
            results = await runtime.stream("s 1").emit([EVENT | {"event_id": name} for name in "abcd"])
        assert sent_ids(hub) == [["a", "b", "c", "d"], ["b"], ["b"]]
        assert [getattr(result, "seq_no", None) for result in results] == [1, 3, None, 2]
        assert hub.naps == [0.5, 1.0]

    run(test())


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("SDK_VALIDATION_EVENT_TOO_LARGE", 413),
        ("SDK_VALIDATION_MAX_EXTENSION_KEYS_EXCEEDED", 400),
        ("SDK_RUNTIME_ALREADY_TERMINAL", 409),
        ("SDK_SECURITY_AUTHZ_DENIED", 403),
        ("SDK_INTERNAL_ERROR", 500),
    ],
)
def test_an_error_inside_a_list_has_the_status_it_would_have_alone(code: str, status: int) -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.item_trouble["a"].append(No(code))
        async with hub.runtime() as runtime:
            [result] = await runtime.stream("s 1").emit([EVENT | {"event_id": "a"}])
        assert isinstance(result, Rejected)
        assert (result.error.machine_code, result.error.status) == (code, status)

    run(test())


def test_an_event_that_stays_in_trouble_is_reported_as_such() -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.item_trouble["a"].extend([No(AWAY)] * 2)
        async with hub.runtime(attempts=2) as runtime:
            [result] = await runtime.stream("s 1").emit([EVENT | {"event_id": "a"}])
        assert isinstance(result, Rejected)
        assert (result.error.retryable, result.error.status) == (True, 503)

    run(test())


def test_a_long_list_is_split_by_count_and_by_size() -> None:
    """Doors: at most 100 events and 1 MiB in a request."""

    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            stream = runtime.stream("s 1")
            many = await stream.emit([EVENT | {"event_id": f"m{number}"} for number in range(201)])
            assert [len(ids) for ids in sent_ids(hub)] == [100, 100, 1]
            assert [result.event_id for result in many] == [f"m{number}" for number in range(201)]
            assert [result.seq_no for result in many if isinstance(result, Emitted)] == list(range(1, 202))

            hub.requests.clear()
            large = [EVENT | {"payload": {"é": "é" * 200_000}} for _ in range(5)]
            assert len(await stream.emit(large)) == 5
        assert [len(ids) for ids in sent_ids(hub)] == [2, 2, 1]
        assert max(len(request.content) for request in hub.requests) <= 1024 * 1024

    run(test())


@pytest.mark.parametrize("events", [1, 2, 3])
def test_a_request_may_be_filled_to_the_last_byte(events: int) -> None:
    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            stream = runtime.stream("s 1")
            drafts = [stream.draft(EVENT | {"payload": {"x": ""}}) for _ in range(events)]
            bare = len(json.dumps({"events": drafts}, separators=(",", ":")))
            drafts[0]["payload"]["x"] = "x" * (1024 * 1024 - bare)
            await stream.emit(drafts)
            assert [len(request.content) for request in hub.requests] == [1024 * 1024]
            drafts[0]["payload"]["x"] += "x"
            if events == 1:
                with pytest.raises(Usage, match="Event 0 has 1048577 bytes"):
                    await stream.emit(drafts)
            else:
                await stream.emit(drafts)
                assert [len(ids) for ids in sent_ids(hub)] == [events, events - 1, 1]

    run(test())


def test_a_list_that_stops_halfway_says_how_far_it_came() -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.extend([None, Lost(), DOWN])
        async with hub.runtime(attempts=2) as runtime:
            stream = runtime.stream("s 1")
            events = [EVENT | {"payload": {"number": number}} for number in range(250)]
            with pytest.raises(NoAnswer) as caught:
                await stream.emit(events)
            progress = caught.value.progress
            assert progress is not None
            assert len(progress.results) == 100
            rest = await stream.emit(progress.unsettled)
        seen = [*progress.results, *rest]
        assert [result.seq_no for result in seen if isinstance(result, Emitted)] == list(range(1, 251))
        assert [result.deduped for result in seen if isinstance(result, Emitted)] == [False] * 100 + [True] * 100 + [
            False
        ] * 50
        assert [event["payload"]["number"] for event in hub.log] == list(range(250))

    run(test())


def nested(levels: int) -> Json:
    value: Json = {}
    for _ in range(levels):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    "payload",
    [{"x": math.nan}, {"x": "\ud800"}, {"x": {1, 2}}, {1: "a", "1": "b"}, nested(62), nested(100_000)],
    ids=["NaN", "surrogate", "not JSON", "key twice", "deep", "very deep"],
)
def test_what_the_hub_could_not_read_is_refused_before_anything_is_sent(payload: Any) -> None:
    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            with pytest.raises(Usage, match="Event 1 "):
                await runtime.stream("s 1").emit([EVENT, EVENT | {"payload": payload}])
        assert hub.requests == []

    run(test())


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"results": []},
        {"results": [{"event_id": "other", "seq_no": 1, "deduped": False}]},
        {"results": [{"event_id": "id-1", "deduped": False}]},
        {"results": ["yes"]},
    ],
    ids=["no results", "too few", "of another event", "without a place", "no object"],
)
def test_an_answer_that_is_not_about_the_event_is_no_answer(answer: Json) -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.append(httpx.Response(200, json=answer))
        async with hub.runtime() as runtime:
            with pytest.raises(NoAnswer) as caught:
                await runtime.stream("s 1").emit([EVENT])
            assert caught.value.progress is not None
            assert [event["event_id"] for event in caught.value.progress.unsettled] == ["id-1"]

    run(test())


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("SDK_RUNTIME_CONFLICT", Conflict),
        ("SDK_RUNTIME_CURSOR_EXPIRED", CursorExpired),
        ("SDK_RUNTIME_STREAM_DEGRADED", StreamDegraded),
        ("SDK_RUNTIME_INVALID_CURSOR", SdkError),
        ("SDK_VALIDATION_BATCH_TOO_LARGE", SdkError),
    ],
)
def test_an_error_object_is_an_exception_field_by_field(code: str, kind: type[SdkError]) -> None:
    """T12"""

    async def test() -> None:
        hub = FakeStreams()
        error = No(code, seq_no=4)
        hub.trouble.append(error.response())
        async with hub.runtime() as runtime:
            with pytest.raises(SdkError) as caught:
                await runtime.stream("s 1").poll("1@0")
        assert type(caught.value) is kind
        assert isinstance(caught.value, Refused)
        assert caught.value.as_json() == error.body | {"status": error.response().status_code}
        assert caught.value.category == code.split("_")[1].capitalize()
        assert str(caught.value).startswith(code)

    run(test())


@pytest.mark.parametrize("code", ["SDK_RUNTIME_CONFLICT", "SDK_RUNTIME_CURSOR_EXPIRED", "SDK_RUNTIME_STREAM_DEGRADED"])
def test_an_error_that_needs_an_action_first_is_not_repeated_whatever_it_says(code: str) -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.append(httpx.Response(409, json=No(code).body | {"retryable": True}))
        async with hub.runtime() as runtime:
            with pytest.raises(SdkError):
                await runtime.stream("s 1").poll()
        assert len(hub.requests) == 1

    run(test())


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (httpx.Response(401, json={"message": "Unauthorized"}), "SDK_SECURITY_AUTH_REQUIRED"),
        (httpx.Response(403, json={"code": "forbidden", "message": "no"}), "SDK_SECURITY_AUTHZ_DENIED"),
        (httpx.Response(404, json={"message": "Not Found"}), "SDK_RUNTIME_NOT_FOUND"),
        (httpx.Response(413, json={"message": "Request Too Long"}), "SDK_VALIDATION_BATCH_TOO_LARGE"),
        (httpx.Response(418, json={}), "SDK_VALIDATION_INVALID_ARGUMENT"),
    ],
    ids=lambda value: str(getattr(value, "status_code", value)),
)
def test_a_gateways_refusal_reads_as_the_hubs_would(response: httpx.Response, code: str) -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.append(response)
        async with hub.runtime() as runtime:
            with pytest.raises(SdkError) as caught:
                await runtime.stream("s 1").poll()
        assert (caught.value.machine_code, caught.value.status) == (code, response.status_code)
        assert not caught.value.retryable

    run(test())


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json=[]),
        httpx.Response(404, text="nothing here"),
        httpx.Response(301, headers={"Location": "https://elsewhere"}, json={}),
    ],
    ids=["html", "no object", "404 html", "redirect"],
)
def test_what_is_no_hub_is_said_to_be_none(response: httpx.Response) -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.append(response)
        async with hub.runtime() as runtime:
            with pytest.raises(NoAnswer, match="is it one"):
                await runtime.stream("s 1").poll("1@0")

    run(test())


def test_a_hub_that_is_away_is_unreachable() -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.extend([DOWN, DOWN])
        async with hub.runtime(attempts=2) as runtime:
            with pytest.raises(Unreachable, match="nobody listens"):
                await runtime.status()
        assert len(hub.requests) == 2

    run(test())


def test_a_token_that_is_refused_is_asked_for_again() -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.tokens = {"T2", "T3"}
        made = iter(["T1", "T2", "T3"])

        async def fresh() -> str:
            return next(made)

        async with hub.runtime(token=fresh) as runtime:
            await runtime.status()
            await runtime.status()
            hub.tokens = {"T3"}
            await runtime.status()
        used = [request.headers["Authorization"] for request in hub.requests]
        assert used == ["Bearer T1", "Bearer T2", "Bearer T2", "Bearer T2", "Bearer T3"]

    run(test())


@pytest.mark.parametrize("token", ["bad", lambda: "bad"], ids=["string", "function"])
def test_a_token_that_stays_refused_is_an_error(token: Any) -> None:
    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime(token=token) as runtime:
            with pytest.raises(SdkError, match="SDK_SECURITY_AUTH_REQUIRED"):
                await runtime.status()
        assert len(hub.requests) == 1

    run(test())


@pytest.mark.parametrize("token", ["", "tökén", "a\nb"])
def test_what_cannot_be_a_token_is_refused_here(token: str) -> None:
    async def test() -> None:
        async with FakeStreams().runtime(token=token) as runtime:
            with pytest.raises(Usage, match="token"):
                await runtime.status()

    run(test())


@pytest.mark.parametrize("name", ["", ".", "..", "\ud800"])
def test_an_id_that_would_make_another_path_is_refused_here(name: str) -> None:
    with pytest.raises(Usage, match="runtime_id"):
        Runtime(URL, name, "T")
    with pytest.raises(Usage, match="stream_id"):
        FakeStreams().runtime().stream(name)


def test_a_runtime_is_used_while_it_is_open_and_at_an_address() -> None:
    async def test() -> None:
        with pytest.raises(Usage, match="async with"):
            await FakeStreams().runtime().status()
        with pytest.raises(Usage, match="not an address"):
            Runtime("hub.test", "r", "T")
        with pytest.raises(Usage, match="attempts"):
            Runtime(URL, "r", "T", attempts=0)

    run(test())
