"""S6, S7, S8: what a sync may ask for, and how a page looks on the wire."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from infra.openapi.models import SyncAnswer
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import BadRequest, Forbidden
from millrace.ledger.domain.page import Event, Origin, Record
from millrace.sync.domain.read import LIMIT_DEFAULT, LIMIT_MAX, LIMIT_MIN, SyncPage, check_sync, page_json

ALL = Identity("me", "default", frozenset({"demo"}), ("*",), frozenset({"consumer"}), "default")
SOME = Identity("me", "default", frozenset({"demo"}), ("a", "team/*"), frozenset({"consumer"}), "default")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ({}, "since_committed_id"),
        ({"since_committed_id": -1}, "since_committed_id"),
        ({"since_committed_id": 1.5}, "since_committed_id"),
        ({"since_committed_id": "1"}, "since_committed_id"),
        ({"since_committed_id": True}, "since_committed_id"),
        ({"since_committed_id": 2**53}, "since_committed_id"),
        ({"since_committed_id": 0, "limit": "5"}, "limit"),
        ({"since_committed_id": 0, "limit": True}, "limit"),
        ({"since_committed_id": 0, "sync_to_committed_id": -1}, "sync_to_committed_id"),
        ({"since_committed_id": 0, "partitions": []}, "partitions"),
        ({"since_committed_id": 0, "partitions": "a"}, "partitions"),
        ({"since_committed_id": 0, "partitions": ["a", ""]}, "partitions[1]"),
        ({"since_committed_id": 0, "partitions": [str(n) for n in range(65)]}, "partitions"),
    ],
)
def test_a_mistake_names_its_field(body: Any, field: str) -> None:
    with pytest.raises(BadRequest) as caught:
        check_sync(body, ALL, "demo")
    assert caught.value.details["field"] == field


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (None, LIMIT_DEFAULT),
        (1, LIMIT_MIN),
        (-5, LIMIT_MIN),
        (LIMIT_MIN, LIMIT_MIN),
        (777, 777),
        (LIMIT_MAX, LIMIT_MAX),
        (10**9, LIMIT_MAX),
    ],
)
def test_s6_limit_is_coerced_into_its_bounds(asked: int | None, given: int) -> None:
    assert check_sync({"since_committed_id": 0, "limit": asked}, ALL, "demo").limit == given


def test_s6_optional_members_that_are_null_count_as_left_out() -> None:
    body = {"since_committed_id": 0}
    nulls = {"partitions": None, "limit": None, "sync_to_committed_id": None}
    assert check_sync({**body, **nulls}, ALL, "demo") == check_sync(body, ALL, "demo")


def test_s7_one_unauthorised_partition_forbids_the_whole_sync() -> None:
    assert check_sync({"since_committed_id": 0, "partitions": ["team/x", "a"]}, SOME, "demo").partitions == [
        "a",
        "team/x",
    ]
    with pytest.raises(Forbidden):
        check_sync({"since_committed_id": 0, "partitions": ["a", "b"]}, SOME, "demo")


def test_the_whole_project_needs_a_token_for_every_partition() -> None:
    assert check_sync({"since_committed_id": 0}, ALL, "demo").partitions is None
    with pytest.raises(Forbidden):
        check_sync({"since_committed_id": 0}, SOME, "demo")


def test_a_page_goes_out_as_json_with_the_stored_body_inside() -> None:
    record = Record('e"1', bytes(17), '{"event":{"type":"t","payload":"ü"},"meta":{"m":1}}'.encode(), ("a", "b"))
    page = SyncPage([Event(7, record, 1234, Origin("c1"))], 7, 9, has_more=True, pruned_through=3)
    assert json.loads(page_json(["a"], page)) == {
        "partitions": ["a"],
        "events": [
            {
                "committed_id": 7,
                "id": 'e"1',
                "client_id": "c1",
                "partitions": ["a", "b"],
                "event": {"type": "t", "payload": "ü"},
                "meta": {"m": 1},
                "status_updated_at": 1234,
            }
        ],
        "next_since_committed_id": 7,
        "sync_to_committed_id": 9,
        "has_more": True,
        "pruned_through_committed_id": 3,
    }


def test_s6_every_field_of_a_page_is_in_the_answer_and_in_its_published_description() -> None:
    values: dict[str, Any] = {field.name: 3 for field in fields(SyncPage)}
    page = SyncPage(**{**values, "events": []})
    answer = json.loads(page_json(None, page))
    assert len(answer) == len({"partitions"} | {field.name for field in fields(SyncPage)})
    assert set(answer) == set(SyncAnswer.model_fields)
