"""T1, T12: the client emits events: completed, split, sent again as they were, one result each."""

from __future__ import annotations

import json
import math
from typing import Any

import httpx
import pytest

from millrace_client.errors import Usage
from millrace_client.streams.sdk_errors import (
    Conflict,
    Emitted,
    NoAnswer,
    Rejected,
    SdkError,
)
from tests.unit.client.fake_streams import DOWN, EVENT, FakeStreams, Json, Lost, No, run

LIMITED = "SDK_SECURITY_RATE_LIMITED"
AWAY = "SDK_INTERNAL_UNAVAILABLE"


def bodies(hub: FakeStreams) -> list[Any]:
    return [json.loads(request.content) for request in hub.asked("POST", "/events")]


def sent_ids(hub: FakeStreams) -> list[list[str]]:
    return [[event["event_id"] for event in body["events"]] for body in bodies(hub)]


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


@pytest.mark.parametrize(
    "extension",
    [
        {"event_type": "acme.sensor.calibrated", "payload": {"drift": 1.5}, "extensions": {"a.b": None}},
        {"event_type": "ExtensionEvent", "payload": {"extension_event_type": "acme.sensor.moved"}},
    ],
    ids=lambda extension: extension["event_type"],
)
def test_an_extension_event_of_an_unknown_type_goes_out_as_it_is(extension: Json) -> None:
    """T2: the client has no list of types."""

    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.extend([Lost(), None, Lost()])
        async with hub.runtime() as runtime:
            stream = runtime.stream("s 1")
            assert await stream.emit(extension) == Emitted("id-1", 1, deduped=True), "sent again under the same id"
            assert await stream.emit([EVENT, extension]) == [
                Emitted("id-2", 2, deduped=True),
                Emitted("id-3", 3, deduped=True),
            ]
        for emitted in (hub.log[0], hub.log[2]):
            assert {name: emitted[name] for name in extension} == extension

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
