"""T5, T12: a runtime as the client sees it: negotiation, errors as exceptions, and tokens."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from millrace_client.errors import Refused, Unreachable, Usage
from millrace_client.streams.negotiation import Limits
from millrace_client.streams.runtime import Runtime
from millrace_client.streams.sdk_errors import (
    Conflict,
    CursorExpired,
    NoAnswer,
    SdkError,
    StreamDegraded,
)
from tests.unit.client.fake_streams import DOWN, EVENT, URL, FakeStreams, Json, No, run


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
