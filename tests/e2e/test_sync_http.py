"""The sync contract over HTTP on a whole hub."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.e2e.api import item, post, submit, sync_all, sync_page
from tests.e2e.conftest import Hub


def test_s5_an_event_posted_twice_is_committed_once(stack: Hub) -> None:
    first = submit(stack, "twice", item("e1", {"text": "hello"}))
    again = submit(stack, "twice", item("e1", {"text": "hello"}))
    assert first == again
    assert first[0]["committed_id"] == 1
    assert abs(first[0]["status_updated_at"] - time.time() * 1000) < 60_000
    assert len(sync_all(stack, "twice")) == 1


def test_s5_other_content_under_a_used_id_is_rejected(stack: Hub) -> None:
    submit(stack, "other", item("e1", "x"))
    (result,) = submit(stack, "other", item("e1", "y"))
    assert (result["status"], result["reason"]) == ("rejected", "validation_failed")
    assert result["errors"][0]["field"] == "id"
    assert [event["event"]["payload"] for event in sync_all(stack, "other")] == ["x"]


def test_s2_bad_items_neither_stop_nor_undo_their_neighbours(stack: Hub) -> None:
    results = submit(stack, "mixed", item("a"), item("b", partitions=[""]), item("c"))
    assert [(r["id"], r["status"], r.get("committed_id")) for r in results] == [
        ("a", "committed", 1),
        ("b", "rejected", None),
        ("c", "committed", 2),
    ]


def test_payloads_come_back_as_they_were_sent(stack: Hub) -> None:
    payload = {"int": 2**70, "float": 1.5, "tiny": 5e-324, "text": "ü😀\u0000", "null": None, "deep": [[[{"a": [1]}]]]}
    submit(stack, "exact", item("e1", payload, meta={"clientTs": 1}))
    (event,) = sync_all(stack, "exact")
    assert event["event"] == {"type": "t", "payload": payload}
    assert event["meta"] == {"clientTs": 1}
    assert event["client_id"] == "C1"


def test_s6_pages_end_at_a_watermark_that_later_commits_do_not_move(stack: Hub) -> None:
    for start in (0, 100):
        submit(stack, "paged", *(item(f"e{n}") for n in range(start, start + 100)))
    first = sync_page(stack, "paged", limit=60)
    submit(stack, "paged", item("late"))
    assert (len(first["events"]), first["sync_to_committed_id"], first["has_more"]) == (60, 200, True)
    rest = sync_all(stack, "paged", limit=60, since_committed_id=60, sync_to_committed_id=200)
    assert [event["committed_id"] for event in rest] == list(range(61, 201))


def test_s6_only_events_of_the_partitions_come(stack: Hub) -> None:
    submit(stack, "parts", item("a", partitions=["x"]), item("b", partitions=["y", "z"]), item("c", partitions=["z"]))
    assert [event["id"] for event in sync_all(stack, "parts", partitions=["z"])] == ["b", "c"]
    assert [event["id"] for event in sync_all(stack, "parts", partitions=["x", "y"])] == ["a", "b"]
    assert sync_page(stack, "parts", partitions=["none"])["next_since_committed_id"] == 3


def test_s7_an_unauthorised_partition_forbids_the_sync_and_shows_nothing(stack: Hub) -> None:
    submit(stack, "demo", item("secret", "hidden", partitions=["theirs"]))
    body = {"since_committed_id": 0, "partitions": ["mine", "theirs"]}
    response = post(stack, "/v1/projects/demo/sync", body, partitions=["mine"])
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")
    assert "hidden" not in response.text


def test_s8_a_future_cursor_is_answered_with_the_real_maximum(stack: Hub) -> None:
    submit(stack, "future", item("a"))
    page = sync_page(stack, "future", since_committed_id=77)
    assert page["events"] == []
    assert (page["next_since_committed_id"], page["sync_to_committed_id"], page["has_more"]) == (77, 1, False)


def test_tenants_do_not_see_each_other(stack: Hub) -> None:
    submit(stack, "demo", item("mine"))
    response = post(stack, "/v1/projects/demo/sync", {"since_committed_id": 0}, tenant="other")
    assert response.json()["events"] == []


@pytest.mark.parametrize(("role", "route"), [("consumer", "submit_events"), ("producer", "sync")])
def test_a_role_opens_only_its_own_door(stack: Hub, role: str, route: str) -> None:
    response = post(stack, f"/v1/projects/demo/{route}", {"since_committed_id": 0}, roles=[role])
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")


def test_the_index_catches_up_and_serves_a_long_history(stack: Hub) -> None:
    """fan_out rings, index follows: waited for by position, then a range larger than a direct read is synced."""
    for start in range(0, 1300, 100):
        submit(stack, "long", *(item(f"e{n}", partitions=[f"p{n % 10}"]) for n in range(start, start + 100)))
    wait_for_index(stack, "long", 1300)
    events = sync_all(stack, "long", partitions=["p3", "p7"])
    assert [event["committed_id"] for event in events] == [n + 1 for n in range(1300) if n % 10 in (3, 7)]


def test_the_sweep_finds_what_the_stream_lost(stack: Hub) -> None:
    """Without its cursor a ledger is behind; no record of the stream will say so again."""
    submit(stack, "swept", item("a"), item("b"))
    wait_for_index(stack, "swept", 2)
    dynamodb = stack.client("dynamodb")
    dynamodb.delete_item(TableName=stack.tables["state"], Key=cursor_key("swept"))

    def sweep() -> None:
        """A page that is younger than its doorbell's delay is not late yet."""
        stack.client("lambda").invoke(FunctionName=stack.stack.functions["sweep"])

    wait_for_index(stack, "swept", 2, sweep)


def cursor_key(project: str) -> dict[str, dict[str, str]]:
    return {"p": {"S": f"ledger#sync#default#{project}"}, "s": {"S": "cursor#index"}}


def wait_for_index(stack: Hub, project: str, position: int, meanwhile: Callable[[], None] = lambda: None) -> None:
    deadline = time.monotonic() + 60
    dynamodb = stack.client("dynamodb")
    indexed = 0
    while time.monotonic() < deadline and indexed < position:
        meanwhile()
        item_ = dynamodb.get_item(TableName=stack.tables["state"], Key=cursor_key(project), ConsistentRead=True).get(
            "Item"
        )
        indexed = int(item_["v"]["N"]) if item_ else 0
    assert indexed == position, f"the index of {project} stands at {indexed}, not {position}"


def test_health_openapi_and_docs_need_no_token(stack: Hub) -> None:
    assert stack.http.get("/health").json()["status"] == "ok"
    assert stack.http.get("/openapi.json").json()["openapi"] == "3.1.0"
    assert "docs/reference.js" in stack.http.get("/docs").text
    assert "SwaggerUIBundle" in stack.http.get("/docs/swagger-ui-bundle.min.js").text


def test_an_unknown_route_is_a_clear_404(stack: Hub) -> None:
    response = stack.http.get("/v1/nothing")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")
