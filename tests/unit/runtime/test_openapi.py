"""R10: the served description is valid, never stale, and says what is answered."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from openapi_spec_validator import validate

from infra.openapi import build, catalog, diagnostics, markers, retention, streams
from infra.openapi.build import META
from infra.openapi.catalog_models import CatalogEvent
from infra.openapi.diagnostics_models import BreakGlassGrant as GrantModel
from infra.openapi.diagnostics_models import GrantRequest
from infra.openapi.markers_models import MarkerCreate, MarkerMove, MarkerRecord
from infra.openapi.models import SubmitRequest, SyncRequest
from infra.openapi.realtime_models import PublishBatchAnswer, RealtimeError, RealtimeEvent, ReplayAnswer
from infra.openapi.retention_models import RetentionAnswer, RetentionChange
from infra.openapi.status_models import StreamProjection
from infra.openapi.streams_models import LimitOverrides, NegotiateAnswer, SdkFailure, StreamDraft, StreamEvent
from infra.realtime_docs import example
from millrace.lake.application.set_retention import policy_json
from millrace.lake.domain import catalog as catalog_rules
from millrace.lake.domain.retention import WHOLE
from millrace.lake.domain.retention_rules import Rule, Scope, check_change
from millrace.ledger.domain.errors import BadRequest, MillraceError, TooLarge
from millrace.realtime.application.publish import Published
from millrace.realtime.application.replay import ReplayPage
from millrace.realtime.doors import answers
from millrace.realtime.doors.registry import TYPES
from millrace.realtime.ports import Watermark
from millrace.streams.domain import status
from millrace.streams.domain.envelope import check_event
from millrace.streams.domain.errors import InvalidArgument, SdkError, catalogue
from millrace.streams.domain.gap import gap_event
from millrace.streams.domain.grant import BreakGlassGrant, check_grant
from millrace.streams.domain.marker import CREATED, check_create, check_move, marker_event
from millrace.streams.domain.negotiate import PROFILES, Negotiated, negotiate
from millrace.streams.domain.privacy import Policy
from tests.support.translated import of_type

# To make them takes longer than any test here; none changes them.
document, files = cache(build.document), cache(build.files)

TS = "2026-02-16T10:00:00.000Z"
SDK_TAGS = {"streams", "markers", "diagnostics"}


def operations() -> dict[str, dict[str, Any]]:
    return {one["operationId"]: one for methods in document()["paths"].values() for one in methods.values()}


def sdk_operations() -> dict[str, dict[str, Any]]:
    return {name: one for name, one in operations().items() if SDK_TAGS & set(one["tags"])}


def test_the_document_is_valid_openapi() -> None:
    validate(document())


def test_the_committed_file_is_not_stale() -> None:
    assert files()[META / "openapi.json"] == (META / "openapi.json").read_text(), "run: make generated"


def test_the_models_take_what_the_readme_sends() -> None:
    item = {"id": "e1", "partitions": ["a"], "event": {"type": "t", "payload": None}, "meta": {"x": 1}}
    SubmitRequest.model_validate({"events": [item]})
    SyncRequest.model_validate({"since_committed_id": 0})


def test_every_route_of_the_template_is_described() -> None:
    described = {f"{method.upper()} {path}" for path, methods in document()["paths"].items() for method in methods}
    routed = {
        route["Properties"]["RouteKey"]
        for route in of_type("AWS::ApiGatewayV2::Route").values()
        if route["Properties"]["ApiId"] == {"Ref": "HttpApi"}
    }
    batch = {"POST /api/v1/events/{proxy+}"}  # a route of its own may not end in a slash
    assert described - {"POST /api/v1/events/batch/"} == routed - batch - {"OPTIONS /{proxy+}", "$default"}


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


def stored(event: dict[str, Any]) -> dict[str, Any]:
    """An event as a poll shows it."""
    emission = check_event(event, "rt_1", "delivery", negotiated(), Policy.of({}), lambda _: "hmac:0123456789abcdef")
    return {**emission.event, "seq_no": 1}


def negotiated(**asked: Any) -> Negotiated:
    return negotiate({"supported_contract_versions": [2], **asked})


@pytest.mark.parametrize("name", sdk_operations())
def test_a_route_of_streams_refuses_in_one_form_only_and_wants_a_token(name: str) -> None:
    """T12"""
    one = sdk_operations()[name]
    assert one["security"] == [{"token": []}]
    refused = {status: answer for status, answer in one["responses"].items() if status != "200"}
    assert refused.keys() >= {"400", "401", "403", "429", "500", "503"}
    for answer in refused.values():
        assert answer["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/SdkFailure"}
    assert all("retry-after" in refused[status]["headers"] for status in ("429", "503"))


def test_every_error_of_streams_is_answered_somewhere_under_its_status() -> None:
    said = {
        (status, code)
        for one in sdk_operations().values()
        for status, answer in one["responses"].items()
        for code in answer["content"]["application/json"].get("examples", {})
    }
    assert said == {(str(kind.status), kind.code) for kind in catalogue()}


@pytest.mark.parametrize("kind", catalogue(), ids=lambda kind: kind.code)
def test_an_error_of_streams_is_as_published(kind: type[SdkError]) -> None:
    SdkFailure.model_validate(kind("no", field="max").body())
    shown = document()["components"]["examples"][kind.code]["value"]
    assert SdkFailure.model_validate(shown).machine_code == kind.code


@pytest.mark.parametrize("profile", PROFILES)
def test_what_negotiation_answers_is_what_is_published_of_it(profile: str) -> None:
    """T5"""
    NegotiateAnswer.model_validate(negotiated(profile=profile).answer("rt_1"))


@pytest.mark.parametrize("limit", LimitOverrides.model_fields)
def test_the_published_bounds_of_a_limit_are_those_that_are_checked(limit: str) -> None:
    """T10"""
    rule, null = LimitOverrides.model_json_schema()["properties"][limit]["anyOf"]
    assert (null, negotiated(limits={limit: None})) == ({"type": "null"}, negotiated())
    small = {"max_event_bytes": 256} if limit == "max_batch_bytes" else {}
    for good in (rule["minimum"], rule["maximum"]):
        assert getattr(negotiated(limits={**small, limit: good}).limits, limit) == good
    for bad in (rule["minimum"] - 1, rule["maximum"] + 1):
        with pytest.raises(InvalidArgument):
            negotiated(limits={**small, limit: bad})


@pytest.mark.parametrize("event", [streams.EVENT, streams.EXTENSION], ids=lambda event: event["event_type"])
def test_an_event_of_the_examples_is_taken_and_read_back_as_published(event: dict[str, Any]) -> None:
    """T1"""
    StreamDraft.model_validate(event)
    StreamEvent.model_validate(stored(event))
    StreamEvent.model_validate(stored({**event, "peer_id": "p", "trace_id": None, "operation_id": None}))


def test_the_hubs_own_events_are_read_as_published() -> None:
    """T9, M5"""
    StreamEvent.model_validate(gap_event("rt_1", "delivery", 1, 8, 5))
    record = {**markers.CREATE, "revision": 1, "updated_ts_ms": 5}
    StreamEvent.model_validate({**marker_event("rt_1", CREATED, record), "seq_no": 1})


def test_a_status_is_as_published() -> None:
    """T11"""
    state = status.nothing()
    StreamProjection.model_validate(state)
    for position, (kind, payload) in enumerate(
        [
            ("RuntimeStateChanged", {"to": "running"}),
            ("InterfaceStateChanged", {"interface": "radio"}),
            ("ErrorRaised", {}),
            ("HealthSnapshot", {"load": 0.5, "ok": True, "mode": "normal"}),
            ("DeliveryStateTransition", {"to": "queued"}),
            ("acme.battery.low", {}),
        ],
        start=1,
    ):
        status.fold(state, {**streams.EVENT, "event_type": kind, "payload": payload}, position)
    assert state.keys() == StreamProjection.model_fields.keys()
    StreamProjection.model_validate(state)


def test_the_examples_of_markers_are_taken() -> None:
    MarkerCreate.model_validate(markers.CREATE)
    made = check_create(markers.CREATE, negotiated().limits)
    MarkerRecord.model_validate({**made, "revision": 1, "updated_ts_ms": 5})
    moved = operations()["moveMarker"]["requestBody"]["content"]["application/json"]["example"]
    MarkerMove.model_validate(moved)
    check_move(moved, negotiated().limits)


def test_the_example_of_a_grant_is_taken_and_shown_as_published() -> None:
    """P4"""
    GrantRequest.model_validate(diagnostics.REQUEST)
    reason, ttl, scope, fields = check_grant(diagnostics.REQUEST)
    for grant in (
        BreakGlassGrant("g", "rt_1", "C1", reason, scope, fields, 0, ttl * 1000, "salt"),
        BreakGlassGrant("g", "rt_1", "C1", reason, None, None, 0, ttl * 1000, "salt").revoked(1),
    ):
        assert "salt" not in GrantModel.model_validate(grant.as_json(2)).model_dump_json()


def test_the_example_of_a_catalog_event_is_taken() -> None:
    """C1"""
    CatalogEvent.model_validate(catalog.EVENT)
    assert catalog_rules.check_event(catalog.EVENT).sequence_position is None


@pytest.mark.parametrize("rules", [{}, {WHOLE: Rule(3, 90)}, {"a": Rule(max_events=5), WHOLE: Rule(1)}])
def test_what_retention_answers_is_what_is_published_of_it(rules: dict[str, Rule]) -> None:
    """C8"""
    RetentionChange.model_validate(retention.CHANGE)
    check_change(retention.CHANGE)
    RetentionAnswer.model_validate(policy_json(Scope("t", "sync", "demo"), rules))
