"""Bad input is answered clearly, names the field, and loses nothing."""

from __future__ import annotations

import json
import time
from typing import Any

import jwt
import pytest

from tests.e2e.api import item, log_lines, post, submit, sync_all
from tests.e2e.conftest import Hub

SUBMIT, SYNC = "/v1/projects/demo/submit_events", "/v1/projects/demo/sync"
ONE = json.dumps({"events": [item("x")]})


def raw(
    stack: Hub, body: bytes | str, path: str = SUBMIT, kind: str = "application/json"
) -> tuple[int, dict[str, Any]]:
    response = stack.http.post(path, content=body, headers={**stack.headers(), "Content-Type": kind})
    answer: dict[str, Any] = response.json()
    assert answer.keys() == {"code", "message", "details"}
    return response.status_code, answer


@pytest.mark.parametrize(
    ("body", "status", "field", "says"),
    [
        ("", 400, "body", "not JSON"),
        ("nonsense", 400, "body", "not JSON"),
        (b"\xff\xfe\x00", 400, "body", "UTF-8"),
        ('{"events": [{"id": "a", "x": NaN}]}', 400, "body", "NaN"),
        ('{"events": [{"id": "a", "x": 1e999}]}', 400, "body", "too large"),
        ('{"events": [], "events": []}', 400, "body", "same key twice"),
        ('{"events": [{"id": "\\ud800"}]}', 400, "body", "lone surrogate"),
        ("[" * 65 + "]" * 65, 400, "body", "deeper than 64"),
        ("[]", 400, "body", "object"),
        ("{}", 400, "events", "list"),
        ('{"events": []}', 400, "events", "1 to 100"),
        (json.dumps({"events": [item(str(n)) for n in range(101)]}), 400, "events", "1 to 100"),
        (json.dumps({"events": [item("a"), item("a")]}), 400, "events[1].id", "same id"),
        (json.dumps({"events": [item("a"), item("")]}), 400, "events[1].id", "non-empty"),
        (json.dumps({"events": [item("a", "x" * 1_048_576)]}), 413, "body", "larger"),
    ],
)
def test_s1_a_bad_request_is_refused_as_a_whole(
    stack: Hub, body: bytes | str, status: int, field: str, says: str
) -> None:
    got, answer = raw(stack, body)
    assert (got, answer["details"]["field"]) == (status, field)
    assert says in answer["message"]
    assert answer["code"] == ("too_large" if status == 413 else "bad_request")


def test_s12_an_oversize_body_is_told_its_size(stack: Hub) -> None:
    _, answer = raw(stack, "x" * 1_048_577)
    assert (answer["details"]["max_bytes"], answer["details"]["actual_bytes"]) == (1_048_576, 1_048_577)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/octet-stream", "image/png"]
)
def test_another_content_type_is_refused(stack: Hub, kind: str) -> None:
    status, answer = raw(stack, ONE, kind=kind)
    assert (status, answer["details"]["field"]) == (400, "content-type")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "since_committed_id"),
        ({"since_committed_id": -1}, "since_committed_id"),
        ({"since_committed_id": 0.5}, "since_committed_id"),
        ({"since_committed_id": "0"}, "since_committed_id"),
        ({"since_committed_id": 0, "sync_to_committed_id": 10**9}, "sync_to_committed_id"),
        ({"since_committed_id": 0, "partitions": []}, "partitions"),
        ({"since_committed_id": 0, "limit": "all"}, "limit"),
    ],
)
def test_a_bad_sync_names_its_field(stack: Hub, body: dict[str, Any], field: str) -> None:
    status, answer = raw(stack, json.dumps(body), SYNC)
    assert (status, answer["details"]["field"]) == (400, field)


def test_s7_a_project_that_is_not_in_the_token_is_forbidden(stack: Hub) -> None:
    response = post(stack, "/v1/projects/theirs/submit_events", {"events": [item("x")]})
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")


def test_a_token_that_cannot_be_trusted_is_refused(stack: Hub) -> None:
    now = int(time.time())
    claims = {"client_id": "C1", "projects": ["demo"], "iss": "millrace", "aud": "millrace", "exp": now + 60}
    unsigned = jwt.encode(claims, "", "none")
    tokens = {
        "expired": stack.token(exp=now - 60),
        "another audience": stack.token(aud="somebody"),
        "another issuer": stack.token(iss="somebody"),
        "no claim exp": stack.token(exp=None),
        "another secret": stack.token(signed_with="x" * 64),
        "unsigned": unsigned,
        "garbage": "a.b.c",
        "no client": stack.token(client_id=None),
        "projects is text": stack.token(projects="demo"),
    }
    for what, token in tokens.items():
        response = stack.http.post(SUBMIT, content=ONE, headers={"Authorization": f"Bearer {token}"})
        assert (response.status_code, response.json()["code"]) == (401, "auth_failed"), what
    assert (
        "expired" in stack.http.post(SUBMIT, headers={"Authorization": f"Bearer {tokens['expired']}"}).json()["message"]
    )
    for header in ({}, {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer"}):
        assert stack.http.post(SUBMIT, content=ONE, headers=header).status_code == 401


def test_s3_a_bad_item_is_rejected_inside_a_200(stack: Hub) -> None:
    long = "x" * 129
    bad = {
        "none": (item("none") | {"partitions": []}, "partitions"),
        "many": (item("many", partitions=[str(n) for n in range(65)]), "partitions"),
        "long": (item("long", partitions=[long]), "partitions[0]"),
        "twice": (item("twice", partitions=["a", "a"]), "partitions"),
        "large": (item("large", "x" * 98_304), "event"),
    }
    results = submit(stack, "items", *(it for it, _ in bad.values()), item("good"))
    assert [(r["id"], r["status"], r.get("reason")) for r in results[:-1]] == [
        (id_, "rejected", "validation_failed") for id_ in bad
    ]
    assert [r["errors"][0]["field"] for r in results[:-1]] == [field for _, field in bad.values()]
    assert results[-1]["committed_id"] == 1
    assert [event["id"] for event in sync_all(stack, "items")] == ["good"]


def test_s7_an_item_with_a_foreign_partition_is_forbidden(stack: Hub) -> None:
    body = {"events": [item("mine", partitions=["team/a"]), item("theirs", partitions=["team/a", "other"])]}
    response = post(stack, "/v1/projects/narrow/submit_events", body, projects=["narrow"], partitions=["team/*"])
    assert [(r["status"], r.get("reason")) for r in response.json()["results"]] == [
        ("committed", None),
        ("rejected", "forbidden"),
    ]


def test_no_secret_and_no_payload_value_is_logged(stack: Hub) -> None:
    token = stack.token(projects=["logged"])
    body = {"events": [item("e1", "hunter2-payload"), item("e2", "hunter2-bad", partitions=["hunter2-long" * 20])]}
    lines: list[str] = []
    for _ in range(100):
        stack.http.post("/v1/projects/logged/submit_events", json=body, headers={"Authorization": f"Bearer {token}"})
        lines = log_lines(stack, "submit")
        if any('"project":"logged"' in line for line in lines):
            break
    assert any('"project":"logged"' in line for line in lines)
    assert not [line for line in lines if "hunter2" in line or token in line or stack.secret in line]
