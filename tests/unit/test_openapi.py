"""R10: the served description is valid, never stale, and says what is answered."""

from __future__ import annotations

import pytest
from openapi_spec_validator import validate

from infra.openapi.build import META, document, files
from infra.openapi.models import SubmitRequest, SyncRequest
from infra.openapi.realtime_models import PublishBatchAnswer, RealtimeError, RealtimeEvent, ReplayAnswer
from infra.realtime_docs import example
from millrace.application.publish import Published
from millrace.application.replay import ReplayPage
from millrace.domain.errors import BadRequest, MillraceError, TooLarge
from millrace.ports_realtime import Watermark
from millrace.runtime.realtime import answers
from millrace.runtime.realtime.registry import TYPES
from tests.unit.translated import of_type

TS = "2026-02-16T10:00:00.000Z"


def test_the_document_is_valid_openapi() -> None:
    validate(document())


@pytest.mark.parametrize("name", ["openapi.json", "docs.html"])
def test_the_committed_file_is_not_stale(name: str) -> None:
    assert files()[META / name] == (META / name).read_text(), "run: make openapi"


def test_the_models_take_what_the_readme_sends() -> None:
    item = {"id": "e1", "partitions": ["a"], "event": {"type": "t", "payload": None}, "meta": {"x": 1}}
    SubmitRequest.model_validate({"events": [item]})
    SyncRequest.model_validate({"since_committed_id": 0})


def test_the_page_names_every_route() -> None:
    page = files()[META / "docs.html"]
    assert all(path in page for path in document()["paths"])


def test_every_route_of_the_template_is_described() -> None:
    described = {f"{method.upper()} {path}" for path, methods in document()["paths"].items() for method in methods}
    routed = {
        route["Properties"]["RouteKey"]
        for route in of_type("AWS::ApiGatewayV2::Route").values()
        if route["Properties"]["ApiId"] == {"Ref": "HttpApi"}
    }
    assert described == routed - {"OPTIONS /{proxy+}", "$default"}


@pytest.mark.parametrize("name", TYPES)
def test_an_event_of_every_type_fits_the_published_envelope(name: str) -> None:
    RealtimeEvent.model_validate(example(name))


@pytest.mark.parametrize(
    "result",
    [
        Published({**example("call.started"), "sequence": 1}),
        Published({**example("call.started"), "sequence": 1}, deduped=True),
        Published(problem="conflict"),
        Published(problem="forbidden"),
        Published(problem="too_large"),
    ],
    ids=["stored", "deduped", "conflict", "forbidden", "too large"],
)
def test_what_publish_answers_is_what_is_published_of_it(result: Published) -> None:
    _, body = answers.published(result)
    PublishBatchAnswer.model_validate({"ok": True, "results": [body]})


@pytest.mark.parametrize("error", [BadRequest("no", field="limit"), TooLarge("no", field="body", max_bytes=1)])
def test_a_refused_request_is_answered_as_published(error: MillraceError) -> None:
    RealtimeError.model_validate_json(answers.refuse(error).body)


@pytest.mark.parametrize(
    "page",
    [
        ReplayPage([], has_more=False, watermark=None),
        ReplayPage([{**example("call.started"), "sequence": 3}], True, Watermark(TS, 0, "e", 3), 2),
        ReplayPage([], False, Watermark(TS, 0, "e"), late={"count": 1, "afterSequence": 4}),
    ],
    ids=["empty", "a page", "late events"],
)
def test_what_replay_answers_is_what_is_published_of_it(page: ReplayPage) -> None:
    ReplayAnswer.model_validate_json(answers.replayed("s", page))
