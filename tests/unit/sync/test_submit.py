"""S1, S3, S5, S7, S12: what the sync contract takes and refuses."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.page import Draft
from millrace.sync.domain.submit import MAX_EVENT_BYTES, Refusal, check_item, check_request

ME = Identity("me", "default", frozenset({"demo"}), ("*",), frozenset({"producer"}), "default")


def item(**changes: Any) -> dict[str, Any]:
    return {"id": "e1", "partitions": ["a"], "event": {"type": "t", "payload": {}}, **changes}


def refused(it: dict[str, Any], identity: Identity = ME, profile: str = "open") -> Refusal:
    result = check_item(it, identity, profile)
    assert isinstance(result, Refusal)
    return result


def drafted(it: dict[str, Any], profile: str = "open") -> Draft:
    result = check_item(it, ME, profile)
    assert isinstance(result, Draft), result
    return result


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (None, "body"),
        ([], "body"),
        ("x", "body"),
        ({}, "events"),
        ({"events": {}}, "events"),
        ({"events": []}, "events"),
        ({"events": [item(id=str(n)) for n in range(101)]}, "events"),
        ({"events": [item(), 5]}, "events[1]"),
        ({"events": [{}]}, "events[0].id"),
        ({"events": [item(id="")]}, "events[0].id"),
        ({"events": [item(id=7)]}, "events[0].id"),
        ({"events": [item(id=None)]}, "events[0].id"),
        ({"events": [item(id="x"), item(id="y"), item(id="x")]}, "events[2].id"),
    ],
)
def test_s1_a_request_level_mistake_names_its_field(body: Any, field: str) -> None:
    with pytest.raises(BadRequest) as caught:
        check_request(body)
    assert caught.value.details["field"] == field


def test_s1_one_to_a_hundred_items_are_taken() -> None:
    for count in (1, 100):
        assert len(check_request({"events": [item(id=str(n)) for n in range(count)]})) == count


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"partitions": []}, "partitions"),
        ({"partitions": [str(n) for n in range(65)]}, "partitions"),
        ({"partitions": None}, "partitions"),
        ({"partitions": "a"}, "partitions"),
        ({"partitions": ["a", ""]}, "partitions[1]"),
        ({"partitions": ["a", 5]}, "partitions[1]"),
        ({"partitions": ["é" * 65]}, "partitions[0]"),
        ({"partitions": ["a", "b", "a"]}, "partitions"),
        ({"partitions": ["\u00e9", "e\u0301"]}, "partitions"),
        ({"event": None}, "event"),
        ({"event": []}, "event"),
        ({"event": {"payload": {}}}, "event.type"),
        ({"event": {"type": "", "payload": {}}}, "event.type"),
        ({"event": {"type": 1, "payload": {}}}, "event.type"),
        ({"event": {"type": "t"}}, "event.payload"),
        ({"meta": []}, "meta"),
        ({"client_id": 5}, "client_id"),
        ({"id": "x" * 1025}, "id"),
    ],
)
def test_s3_an_item_level_mistake_names_its_field(changes: dict[str, Any], field: str) -> None:
    result = refused(item(**changes))
    assert result.reason == "validation_failed"
    assert [error["field"] for error in result.errors] == [field]


def test_s3_all_mistakes_of_an_item_are_told_at_once() -> None:
    errors = refused(item(partitions=[], event={"type": ""}, meta=5)).errors
    assert [error["field"] for error in errors] == ["partitions", "event.type", "meta"]


def test_s3_partitions_of_128_bytes_and_64_of_them_are_taken() -> None:
    assert drafted(item(partitions=["x" * 128])).partitions == ("x" * 128,)
    assert len(drafted(item(partitions=[str(n) for n in range(64)])).partitions) == 64


def test_s3_partitions_are_stored_sorted_and_normalised() -> None:
    assert drafted(item(partitions=["b", "e\u0301", "a"])).partitions == ("a", "b", "\u00e9")


def test_s3_optional_members_that_are_null_count_as_left_out() -> None:
    assert drafted(item(client_id=None, meta=None)) == drafted(item())


def test_s5_content_is_the_sorted_partitions_and_the_event() -> None:
    base = item(partitions=["a", "b"], event={"type": "t", "payload": {"x": 1, "y": 1.0}})
    same = [
        item(partitions=["b", "a"], event={"payload": {"y": 1, "x": 1.0}, "type": "t"}),
        {**base, "meta": {"clientTs": 5}},
        {**base, "client_id": "me"},
    ]
    other = [
        {**base, "partitions": ["a"]},
        {**base, "event": {"type": "t", "payload": {"x": 2, "y": 1}}},
        {**base, "event": {"type": "u", "payload": {"x": 1, "y": 1}}},
        {**base, "event": {"type": "t", "payload": {"x": 1, "y": 1}, "more": None}},
    ]
    digest = drafted(base).digest
    assert {drafted(it).digest for it in same} == {digest}
    assert digest not in {drafted(it).digest for it in other}


def test_s7_a_partition_the_token_does_not_reach_is_forbidden() -> None:
    narrow = Identity("me", "default", frozenset({"demo"}), ("team/*", "own"), frozenset({"producer"}), "default")
    assert isinstance(check_item(item(partitions=["own", "team/x"]), narrow, "open"), Draft)
    for partitions in (["own", "other"], ["own", "team/x", "zoo"], ["other", "own", "zoo"]):
        assert refused(item(partitions=partitions), narrow).reason == "forbidden", "wherever it stands in the list"
    assert refused(item(partitions=["own/x"]), narrow).reason == "forbidden"


def test_another_clients_id_is_forbidden() -> None:
    assert refused(item(client_id="you")).reason == "forbidden"


def test_s12_an_event_of_96_kib_is_taken_and_one_byte_more_is_not() -> None:
    empty = drafted(item(event={"type": "t", "payload": ""}))
    room = MAX_EVENT_BYTES - len(empty.body) - len('["a"]') - len("e1")
    assert len(drafted(item(event={"type": "t", "payload": "x" * room})).body) > 98_000
    error = refused(item(event={"type": "t", "payload": "x" * (room + 1)})).errors[0]
    assert error["field"] == "event"
    assert str(MAX_EVENT_BYTES) in error["message"]


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ({"type": "event", "payload": {"schema": "s", "data": 1}}, []),
        ({"type": "event", "payload": {"schema": "s", "data": None, "meta": {}}}, []),
        ({"type": "event", "payload": {"schema": "s", "data": 1, "meta": None}}, []),
        ({"type": "other", "payload": {"schema": "s", "data": 1}}, ["event.type"]),
        ({"type": "event", "payload": []}, ["event.payload"]),
        (
            {"type": "event", "payload": {"schema": "", "meta": 1, "x": 1}},
            ["event.payload.schema", "event.payload.data", "event.payload.meta", "event.payload.x"],
        ),
    ],
)
def test_s3_the_canonical_profile(event: Any, fields: list[str]) -> None:
    result = check_item(item(event=event), ME, "canonical")
    assert [error["field"] for error in getattr(result, "errors", [])] == fields


@pytest.mark.parametrize("kind", ["set", "unset", "treePush", "treeDelete", "treeUpdate", "treeMove"])
def test_s3_the_compatibility_profile_knows_six_types(kind: str) -> None:
    drafted(item(event={"type": kind, "payload": {}}), "compatibility")
    assert refused(item(event={"type": kind + "x", "payload": {}}), profile="compatibility").errors
    assert refused(item(event={"type": kind, "payload": 1}), profile="compatibility").errors


def test_errors_never_repeat_a_payload_value() -> None:
    errors = str(refused(item(event={"type": "t"}, partitions=["", "hunter2" * 30], meta="hunter2")).errors)
    assert "hunter2" not in errors
