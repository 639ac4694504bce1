"""The client's face of the doors that steer: what it asks for, and how it goes on from page to page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from millrace_client.operator.http import OperatorHttp
from millrace_client.operator.targets import RetentionRules, Targets

Asked = list[tuple[str, str, Any]]


def hub(*answers: dict[str, Any]) -> tuple[OperatorHttp, Asked]:
    asked, left = Asked(), list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        asked.append((request.method, request.url.raw_path.decode(), body))
        return httpx.Response(200, json=left.pop(0))

    return OperatorHttp("http://hub", "token", transport=httpx.MockTransport(answer)), asked


@pytest.fixture
def closing() -> Iterator[list[OperatorHttp]]:
    made: list[OperatorHttp] = []
    yield made
    for one in made:
        one.__exit__()


def test_a_bulk_retry_goes_on_until_nothing_is_left(closing: list[OperatorHttp]) -> None:
    http, asked = hub({"matched": 500, "retried": 500, "next": "x%#1"}, {"matched": 3, "retried": 3, "next": None})
    closing.append(http)
    steps = Targets(http).retry_many("a/b", families=["build."], since_ms=5)
    assert sum(step["retried"] for step in steps) == 503
    body = {"status": "terminal_failed", "dry_run": False, "families": ["build."], "since_ms": 5}
    path = "/v1/targets/a%2Fb/retry"
    assert asked == [("POST", path, body), ("POST", path, {**body, "after": "x%#1"})]


def test_an_event_id_of_any_text_travels_in_the_query(closing: list[OperatorHttp]) -> None:
    http, asked = hub({"history": []})
    closing.append(http)
    Targets(http).attempts("a", "order 17/paid?&#é")
    assert asked == [("GET", "/v1/targets/a/attempts?event_id=order+17%2Fpaid%3F%26%23%C3%A9", None)]


def test_targets_are_counted_paused_and_resumed(closing: list[OperatorHttp]) -> None:
    http, asked = hub({"targets": [{"target_id": "a"}]}, {"paused": True}, {"paused": False})
    closing.append(http)
    targets = Targets(http)
    assert targets.list(counts=True) == [{"target_id": "a"}]
    assert targets.pause("a")["paused"]
    assert not targets.resume("a")["paused"]
    assert [path for _, path, _ in asked] == ["/v1/targets?counts=true", "/v1/targets/a/pause", "/v1/targets/a/resume"]


def test_rules_and_deliveries_are_read_page_by_page_and_a_plan_is_asked_for(closing: list[OperatorHttp]) -> None:
    one, two, three = ({"n": number} for number in (1, 2, 3))
    pages: list[dict[str, Any]] = [{"policies": [one], "next_after": "k"}, {"policies": [two], "next_after": None}]
    found: list[dict[str, Any]] = [{"deliveries": [three], "next_after": "d"}, {"deliveries": [], "next_after": None}]
    http, asked = hub(*pages, *found, {"goes": []})
    closing.append(http)
    assert list(RetentionRules(http).list("sync")) == [one, two]
    assert list(Targets(http).deliveries("a", "rejected")) == [three]
    RetentionRules(http).plan("streams", "rt:s%3A1")
    assert [path for _, path, _ in asked] == [
        "/v1/retention?contract=sync",
        "/v1/retention?contract=sync&after=k",
        "/v1/targets/a/deliveries?status=rejected",
        "/v1/targets/a/deliveries?status=rejected&after=d",
        "/v1/retention/streams/rt%3As%253A1/plan",
    ]
