"""Every door of the streams contract asks for its token and refuses bad requests: a 4xx of T12, never a 500."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.conftest import Hub
from tests.e2e.streams_api import EVERY_ROLE, Runtime, code, error, event, negotiated

INVALID = "SDK_VALIDATION_INVALID_ARGUMENT"
JSON = {"Content-Type": "application/json"}
PLACE = {"lat": 1, "lon": 2}
NEGOTIATION: dict[str, Any] = {"supported_contract_versions": [2]}
MARKER: dict[str, Any] = {"label": "a", "position": PLACE}
MOVE: dict[str, Any] = {"position": PLACE, "expected_revision": 1}
GRANT: dict[str, Any] = {"reason": "r", "ttl_s": 60}
DOORS: list[tuple[str, str, Any, str]] = [
    ("POST", "/negotiate", NEGOTIATION, "producer"),
    ("GET", "/negotiate", None, "producer"),
    ("POST", "/streams/s/events", event("a"), "producer"),
    ("GET", "/streams/s/events", None, "consumer"),
    ("GET", "/status", None, "consumer"),
    ("POST", "/markers", MARKER, "producer"),
    ("GET", "/markers", None, "consumer"),
    ("PATCH", "/markers/m/position", MOVE, "producer"),
    ("DELETE", "/markers/m?expected_revision=1", None, "producer"),
    ("POST", "/diagnostics/grants", GRANT, "operator"),
    ("GET", "/diagnostics/grants", None, "operator"),
    ("DELETE", "/diagnostics/grants?grant_id=g", None, "operator"),
    ("GET", "/diagnostics/g", None, "operator"),
    ("GET", "/v1/audit", None, "operator"),
]
WRITING = [(method, path, body) for method, path, body, _ in DOORS if body]


def strict(stack: Hub) -> Runtime:
    return negotiated(stack, "strict", {"roles": EVERY_ROLE})


@pytest.mark.parametrize(
    ("claims", "status", "told"),
    [
        ({"exp": 1}, 401, "SDK_SECURITY_AUTH_REQUIRED"),
        ({"aud": "them"}, 401, "SDK_SECURITY_AUTH_REQUIRED"),
        ({"signed_with": "x" * 64}, 401, "SDK_SECURITY_AUTH_REQUIRED"),
        ({"roles": []}, 403, "SDK_SECURITY_AUTHZ_DENIED"),
        ({"partitions": ["runtime:theirs", "strict"]}, 403, "SDK_SECURITY_AUTHZ_DENIED"),
    ],
)
def test_t12_no_door_opens_without_the_right_token(stack: Hub, claims: dict[str, Any], status: int, told: str) -> None:
    runtime = strict(stack)
    for method, path, body, _ in DOORS:
        if path == "/v1/audit" and "partitions" in claims:
            continue  # it is of the whole tenant
        assert code(runtime.ask(method, path, claims=claims, json=body), status) == told, (method, path)


def test_each_door_asks_for_its_own_role(stack: Hub) -> None:
    runtime = strict(stack)
    for method, path, body, role in DOORS:
        others = ["operator"] if path == "/negotiate" else [other for other in EVERY_ROLE if other != role]
        response = runtime.ask(method, path, claims={"roles": others}, json=body)
        assert code(response, 403) == "SDK_SECURITY_AUTHZ_DENIED", (method, path)


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"", 400, INVALID),
        (b"nonsense", 400, INVALID),
        (b"\xff\xfe\x00", 400, INVALID),
        (b'{"a": NaN}', 400, INVALID),
        (b'{"a": 1e999}', 400, INVALID),
        (b'{"a": ' + b"9" * 5000 + b"}", 400, INVALID),
        (b'{"a": 1, "a": 2}', 400, INVALID),
        (b'{"a": "\\ud800"}', 400, INVALID),
        (b"[" * 65 + b"]" * 65, 400, INVALID),
        (b"[" * 100_000, 400, INVALID),
        (b"[]", 400, INVALID),
        (b"null", 400, INVALID),
        (b'"text"', 400, INVALID),
        (b"{}", 400, INVALID),
        (b'{"": ""}', 400, INVALID),
        (b" " * 1_048_577, 413, "SDK_VALIDATION_BATCH_TOO_LARGE"),
    ],
)
def test_what_is_no_request_is_refused_at_every_door(stack: Hub, body: bytes, status: int, told: str) -> None:
    runtime = strict(stack)
    for method, path, _ in WRITING:
        response = runtime.ask(method, path, content=body, headers=JSON)
        refused = error(response, status)
        assert (refused["machine_code"], "field" in refused["details"]) == (told, True), (method, path)


@pytest.mark.parametrize("kind", ["text/plain", "application/json; charset=latin-1", "application/octet-stream", ""])
def test_another_content_type_is_refused_at_every_door(stack: Hub, kind: str) -> None:
    runtime = strict(stack)
    for method, path, body in WRITING:
        response = runtime.ask(method, path, content=json.dumps(body), headers={"Content-Type": kind})
        assert error(response, 400)["details"]["field"] == "content-type", (method, path)


BAD_NEGOTIATIONS: list[tuple[dict[str, Any], str]] = [
    ({"supported_contract_versions": 2}, "supported_contract_versions"),
    ({"supported_contract_versions": ["2"]}, "supported_contract_versions"),
    ({"supported_contract_versions": [True]}, "supported_contract_versions"),
    ({"supported_contract_versions": [2] * 65}, "supported_contract_versions"),
    ({"requested_capabilities": "all"}, "requested_capabilities"),
    ({"profile": "mainframe"}, "profile"),
    ({"profile": []}, "profile"),
    ({"limits": []}, "limits"),
    ({"limits": {"max_poll_events": 0}}, "limits.max_poll_events"),
    ({"limits": {"max_poll_events": 10_001}}, "limits.max_poll_events"),
    ({"limits": {"max_event_bytes": 65_537}}, "limits.max_event_bytes"),
    ({"limits": {"max_event_bytes": 1_000, "max_batch_bytes": 999}}, "limits.max_batch_bytes"),
    ({"limits": {"max_extension_keys": 1.5}}, "limits.max_extension_keys"),
    ({"limits": {"max_patience": 1}}, "limits.max_patience"),
    ({"verions": [2]}, "verions"),
]
BAD_MARKERS: list[tuple[dict[str, Any], str]] = [
    ({"label": ""}, "label"),
    ({"label": None}, "label"),
    ({"position": []}, "position"),
    ({"position": {"lat": 91, "lon": 0}}, "position.lat"),
    ({"position": {"lat": True, "lon": 0}}, "position.lat"),
    ({"position": {"lat": 0}}, "position.lon"),
    ({"position": {**PLACE, "alt_m": "high"}}, "position.alt_m"),
    ({"position": {**PLACE, "alt_m": 10**400}}, "position.alt_m"),
    ({"position": {**PLACE, "altitude": 1}}, "position.altitude"),
    ({"marker_id": "a/b"}, "marker_id"),
    ({"marker_id": "-a"}, "marker_id"),
    ({"marker_id": 7}, "marker_id"),
    ({"topic_id": " "}, "topic_id"),
    ({"extensions": "x"}, "extensions"),
    ({"extensions": {str(n): n for n in range(33)}}, "extensions"),
    ({"colour": "red"}, "colour"),
]
BAD_MOVES: list[tuple[dict[str, Any], str]] = [
    ({"expected_revision": None}, "expected_revision"),
    ({"expected_revision": 0}, "expected_revision"),
    ({"expected_revision": "1"}, "expected_revision"),
    ({"expected_revision": True}, "expected_revision"),
    ({"expected_revision": 10**30}, "expected_revision"),
    ({"position": None}, "position"),
    ({"label": "b"}, "label"),
]
BAD_GRANTS: list[tuple[dict[str, Any], str]] = [
    ({"reason": " "}, "reason"),
    ({"reason": "x" * 1025}, "reason"),
    ({"ttl_s": 59}, "ttl_s"),
    ({"ttl_s": 86_401}, "ttl_s"),
    ({"ttl_s": 60.5}, "ttl_s"),
    ({"scope": []}, "scope"),
    ({"scope": ""}, "scope"),
    ({"scope": False}, "scope"),
    ({"scope": [1]}, "scope"),
    ({"scope": {"tables": ["x"]}}, "scope"),
    ({"scope": {"streams": []}}, "scope.streams"),
    ({"scope": {"fields": [""]}}, "scope.fields"),
    ({"scope": {"fields": ["x"] * 33}}, "scope.fields"),
    ({"who": "me"}, "who"),
]
BAD_QUERIES = [
    ("GET", "/streams/s/events?max=x", "max"),
    ("GET", "/streams/s/events?max=-1", "max"),
    ("GET", "/streams/s/events?max=1.0", "max"),
    ("GET", "/streams/s/events?max=%D9%A3", "max"),
    ("GET", "/streams/s/events?max=99999999999999999999", "max"),
    ("GET", "/streams/s/events?max=", "max"),
    ("GET", "/streams/s/events?cursr=x", "cursr"),
    ("GET", "/streams/s/events?cursor=", "cursor"),
    ("GET", "/streams/s/events?cursor=a&cursor=b", "cursor"),
    ("GET", "/status?rebuild=yes", "rebuild"),
    ("GET", "/status?verbose=1", "verbose"),
    ("GET", "/markers?max=0", "max"),
    ("GET", "/markers?max=501", "max"),
    ("GET", "/markers?topic_id=", "topic_id"),
    ("GET", "/markers?cursor=x", "cursor"),
    ("GET", "/markers?after=x", "after"),
    ("DELETE", "/markers/m", "expected_revision"),
    ("DELETE", "/markers/m?expected_revision=0", "expected_revision"),
    ("DELETE", "/markers/m?expected_revision=one", "expected_revision"),
    ("DELETE", "/markers/-?expected_revision=1", "marker_id"),
    ("DELETE", "/diagnostics/grants", "grant_id"),
    ("GET", "/diagnostics/g?max=101", "max"),
    ("GET", f"/diagnostics/g?after={'x' * 513}", "after"),
    ("GET", "/v1/audit?after=-1", "after"),
    ("GET", "/v1/audit?max=501", "max"),
    ("GET", "/v1/audit?since=1", "since"),
    ("GET", f"/streams/{'s' * 129}/events", "stream_id"),
    ("GET", f"/v1/runtimes/{'r' * 129}/streams/s/events", "runtime_id"),
    ("GET", "/v1/runtimes/%20/status", "runtime_id"),
    ("GET", f"/v1/runtimes/{'r' * 129}/markers", "runtime_id"),
]


@pytest.mark.parametrize(
    ("method", "path", "good", "changes"),
    [
        ("POST", "/negotiate", NEGOTIATION, BAD_NEGOTIATIONS),
        ("POST", "/markers", MARKER, BAD_MARKERS),
        ("PATCH", "/markers/m/position", MOVE, BAD_MOVES),
        ("POST", "/diagnostics/grants", GRANT, BAD_GRANTS),
    ],
)
def test_a_bad_body_names_its_field(
    stack: Hub, method: str, path: str, good: dict[str, Any], changes: list[tuple[dict[str, Any], str]]
) -> None:
    runtime = strict(stack)
    for change, field in changes:
        content = json.dumps({**good, **change})
        refused = error(runtime.ask(method, path, content=content, headers=JSON), 400)
        assert (refused["details"]["field"], refused["category"]) == (field, "Validation"), change
    assert runtime.good("GET", "/markers")["markers"] == []
    assert runtime.good("GET", "/diagnostics/grants")["grants"] == []


def test_a_bad_query_or_path_names_its_field(stack: Hub) -> None:
    runtime = strict(stack)
    for method, path, field in BAD_QUERIES:
        refused = error(runtime.ask(method, path), 400)
        assert refused["details"]["field"] == field, (path, refused)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/diagnostics/nothing"), ("DELETE", "/diagnostics/grants?grant_id=nothing")],
)
def test_a_grant_that_is_not_there_is_a_404(stack: Hub, method: str, path: str) -> None:
    assert code(strict(stack).ask(method, path), 404) == "SDK_RUNTIME_NOT_FOUND"
