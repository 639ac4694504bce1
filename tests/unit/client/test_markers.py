"""The marker client: revisions, conflicts that refresh before they retry, and answers that were lost."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from millrace_client.errors import Usage
from millrace_client.streams.markers import Marker, Position
from millrace_client.streams.sdk_errors import Conflict, NoAnswer, SdkError
from tests.unit.client.fake_streams import FakeStreams, Lost, No, run

HERE = Position(47.5, 8.25)
THERE = Position(-1.0, 2.0, 430.5)


def moved_by_another(hub: FakeStreams, marker_id: str) -> None:
    marker = hub.markers[marker_id]
    hub._move(marker_id, {"lat": 0, "lon": 0}, marker["revision"])


def doors(hub: FakeStreams) -> list[str]:
    return [request.method for request in hub.requests]


def test_a_marker_is_created_moved_and_deleted() -> None:
    """M1, M2"""

    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            markers = runtime.markers
            created = await markers.create("camp", HERE, topic_id="t", extensions={"colour": "red"})
            assert created == Marker("id-1", "camp", HERE, 1, 1, "t", {"colour": "red"})
            moved = await markers.move("id-1", THERE, created.revision, extensions={"colour": "blue"})
            assert (moved.position, moved.revision, moved.extensions) == (THERE, 2, {"colour": "blue"})
            assert await markers.delete("id-1", moved.revision) is True
            assert await markers.delete("id-1", moved.revision) is False
            assert (await markers.create("camp", HERE, marker_id="id-1")).revision == 4
        create, move, *_ = hub.requests
        assert json.loads(create.content) == {
            "marker_id": "id-1",
            "label": "camp",
            "position": {"lat": 47.5, "lon": 8.25},
            "topic_id": "t",
            "extensions": {"colour": "red"},
        }
        assert json.loads(move.content) == {
            "position": {"lat": -1.0, "lon": 2.0, "alt_m": 430.5},
            "expected_revision": 1,
            "extensions": {"colour": "blue"},
        }

    run(test())


def test_the_list_goes_over_all_pages_even_short_and_empty_ones() -> None:
    """M4"""

    async def test() -> None:
        hub = FakeStreams(per_page=2)
        async with hub.runtime() as runtime:
            for number in range(7):
                await runtime.markers.create("m", HERE, topic_id="late" if number > 4 else None)
            everyone = [marker.marker_id async for marker in runtime.markers.list(page=2)]
            late = [marker.marker_id async for marker in runtime.markers.list("late")]
        assert everyone == [f"id-{number}" for number in range(1, 8)]
        assert late == ["id-6", "id-7"]
        asked = hub.asked("GET", "/markers")
        assert [request.url.params.get("cursor") for request in asked] == [None, "id-2", "id-4", "id-6"] * 2
        assert [request.url.params["max"] for request in asked] == ["2"] * 4 + ["500"] * 4

    run(test())


def test_refresh_reads_one_marker_from_the_list() -> None:
    async def test() -> None:
        hub = FakeStreams(per_page=1)
        async with hub.runtime() as runtime:
            await runtime.markers.create("a", HERE)
            second = await runtime.markers.create("b", THERE)
            assert await runtime.markers.refresh(second.marker_id) == second
            assert await runtime.markers.refresh("nobody") is None

    run(test())


def test_a_conflicting_move_refreshes_and_wins() -> None:
    """M3, M4: the list is read before the write is tried again."""

    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            created = await runtime.markers.create("camp", HERE)
            moved_by_another(hub, "id-1")
            hub.requests.clear()
            moved = await runtime.markers.move("id-1", THERE, created.revision)
        assert (moved.position, moved.revision) == (THERE, 3)
        assert doors(hub) == ["PATCH", "GET", "PATCH"]
        assert json.loads(hub.requests[-1].content)["expected_revision"] == 2

    run(test())


def test_a_move_without_a_revision_reads_it_first() -> None:
    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            await runtime.markers.create("camp", HERE)
            moved_by_another(hub, "id-1")
            hub.requests.clear()
            assert (await runtime.markers.move("id-1", THERE)).revision == 3
            assert doors(hub) == ["GET", "PATCH"]
            with pytest.raises(SdkError, match="SDK_RUNTIME_NOT_FOUND") as caught:
                await runtime.markers.move("nobody", THERE)
        assert caught.value.details == {"domain": "marker", "marker_id": "nobody"}

    run(test())


def test_a_conflict_is_raised_to_those_who_want_to_decide_themselves() -> None:
    """M3"""

    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            await runtime.markers.create("camp", HERE)
            moved_by_another(hub, "id-1")
            hub.requests.clear()
            with pytest.raises(Conflict) as caught:
                await runtime.markers.move("id-1", THERE, 1, retry=False)
        assert doors(hub) == ["PATCH"]
        assert caught.value.details == {
            "domain": "marker",
            "marker_id": "id-1",
            "expected_revision": 1,
            "observed_revision": 2,
        }

    run(test())


def test_a_move_that_loses_every_time_ends_with_the_conflict() -> None:
    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime(attempts=3) as runtime:
            await runtime.markers.create("camp", HERE)
            stale = No("SDK_RUNTIME_CONFLICT", domain="marker")
            hub.trouble.extend([stale.response(), None, stale.response(), None, stale.response()])
            hub.requests.clear()
            with pytest.raises(Conflict):
                await runtime.markers.move("id-1", THERE, 1)
        assert doors(hub) == ["PATCH", "GET", "PATCH", "GET", "PATCH"]
        assert hub.naps == [0.5, 1.0]

    run(test())


def test_a_marker_that_went_away_is_not_brought_back() -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.append(No("SDK_RUNTIME_CONFLICT", domain="marker").response())
        async with hub.runtime() as runtime:
            with pytest.raises(Conflict):
                await runtime.markers.move("id-1", THERE, 1)
        assert doors(hub) == ["PATCH", "GET"]
        assert hub.markers == {}

    run(test())


@pytest.mark.parametrize("retry", [True, False])
def test_a_move_whose_answer_was_lost_is_not_made_twice(retry: bool) -> None:
    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            await runtime.markers.create("camp", HERE)
            hub.trouble.append(Lost())
            moved = await runtime.markers.move("id-1", THERE, 1, retry=retry)
        assert (moved.position, moved.revision) == (THERE, 2)
        assert hub.markers["id-1"]["revision"] == 2

    run(test())


@pytest.mark.parametrize("marker_id", [None, "mine"])
def test_a_creation_whose_answer_was_lost_finds_its_marker(marker_id: str | None) -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.append(Lost())
        async with hub.runtime() as runtime:
            created = await runtime.markers.create("camp", HERE, marker_id=marker_id)
        assert (created.marker_id, created.revision) == (marker_id or "id-1", 1)
        assert len(hub.markers) == 1
        first, second = hub.asked("POST", "/markers")
        assert first.content == second.content

    run(test())


@pytest.mark.parametrize(
    ("label", "unsure"),
    [("theirs", False), ("ours", False), ("ours", True)],
    ids=["the same", "other", "after trouble"],
)
def test_the_id_of_anothers_marker_is_a_conflict(label: str, unsure: bool) -> None:
    """M3"""

    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            await runtime.markers.create("theirs", HERE, marker_id="taken")
            hub.trouble.extend([No("SDK_INTERNAL_UNAVAILABLE").response()] if unsure else [])
            with pytest.raises(Conflict):
                await runtime.markers.create(label, HERE, marker_id="taken")
        assert hub.markers["taken"]["label"] == "theirs"

    run(test())


def test_a_delete_never_overrides_what_another_has_changed() -> None:
    """M2, M3"""

    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            await runtime.markers.create("camp", HERE)
            moved_by_another(hub, "id-1")
            with pytest.raises(Conflict):
                await runtime.markers.delete("id-1", 1)
            assert await runtime.markers.delete("nobody") is False
            assert await runtime.markers.delete("id-1") is True
        assert [request.url.params["expected_revision"] for request in hub.asked("DELETE", "/id-1")] == ["1", "2"]

    run(test())


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"markers": [], "next_cursor": ""},
        {"markers": [{"marker_id": "x"}], "next_cursor": None},
        {"markers": [7], "next_cursor": None},
    ],
)
def test_a_list_that_is_not_of_the_contract_is_no_answer(body: Any) -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.append(httpx.Response(200, json=body))
        async with hub.runtime() as runtime:
            with pytest.raises(NoAnswer, match="not of the contract"):
                await runtime.markers.refresh("x")

    run(test())


def test_what_is_not_json_is_refused_here() -> None:
    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            with pytest.raises(Usage, match="not JSON"):
                await runtime.markers.create("camp", Position(float("nan"), 0))
            with pytest.raises(Usage, match="marker_id"):
                await runtime.markers.move("..", HERE, 1)
        assert hub.requests == []

    run(test())
