"""Markers on a whole hub: revisions that race, events that tell of them in order, and functions that die between."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, cast

import pytest

from millrace.ledger.application.commit import Commit
from millrace.ledger.domain.access import Identity
from millrace.ledger.ports import KeyRing
from millrace.streams.application.announce import Announce
from millrace.streams.application.markers import ManageMarkers, marker_group
from millrace.streams.domain.privacy import Policy
from tests.e2e.conftest import Hub
from tests.e2e.streams_api import TENANT, Runtime, Stores, code, error, negotiated, now_ms

UPDATES = int(os.environ.get("MILLRACE_MARKER_UPDATES", "40"))
PLACE = {"lat": 52.5, "lon": 13.4}
LONG_AGO_MS = 120_000
CONFLICT, ABSENT = "SDK_RUNTIME_CONFLICT", "SDK_RUNTIME_NOT_FOUND"


def create(runtime: Runtime, **sent: Any) -> dict[str, Any]:
    answer = runtime.good("POST", "/markers", json={"label": "a", "position": PLACE, **sent})
    assert answer["accepted"] is True
    record: dict[str, Any] = answer["marker"]
    return record


def move(runtime: Runtime, marker_id: str, expected: int, lat: float = 1.0) -> Any:
    body = {"position": {"lat": lat, "lon": 0}, "expected_revision": expected}
    return runtime.ask("PATCH", f"/markers/{marker_id}/position", json=body)


def delete(runtime: Runtime, marker_id: str, expected: int) -> Any:
    return runtime.ask("DELETE", f"/markers/{marker_id}", params={"expected_revision": expected})


def listed(runtime: Runtime, **query: Any) -> list[dict[str, Any]]:
    """The whole list, page by page."""
    page = runtime.good("GET", "/markers", params=query)
    markers = list(page["markers"])
    while page["next_cursor"] is not None:
        page = runtime.good("GET", "/markers", params={**query, "cursor": page["next_cursor"]})
        markers += page["markers"]
    return markers


def told(runtime: Runtime, marker_id: str) -> list[tuple[str, int]]:
    """What the stream `markers` says of one marker: kinds and revisions, in the stream's order."""
    events = [one for one in runtime.events("markers") if one["payload"]["marker"]["marker_id"] == marker_id]
    for one in events:
        record = one["payload"]["marker"]
        assert (one["event_id"], one["event_type"]) == (f"marker-{marker_id}-{record['revision']}", "ExtensionEvent")
    return [(one["payload"]["extension_event_type"], one["payload"]["marker"]["revision"]) for one in events]


def test_m1_m3_m5_two_writers_race_and_no_revision_is_lost_or_doubled(stack: Hub) -> None:
    """Every loser is told who won, refreshes from the list, and wins in the end."""
    runtime = negotiated(stack, "raced-markers")
    assert create(runtime, marker_id="m")["revision"] == 1

    def update(writer: int) -> tuple[list[int], int]:
        won, lost, known = list[int](), 0, 1
        while len(won) < UPDATES // 2:
            response = move(runtime, "m", known, lat=writer)
            if response.status_code == 200:
                known = response.json()["marker"]["revision"]
                won.append(known)
                continue
            refused = error(response, 409)
            details = refused["details"]
            assert refused["machine_code"] == CONFLICT
            assert details.keys() == {"domain", "marker_id", "expected_revision", "observed_revision"}
            assert (details["domain"], details["marker_id"], details["expected_revision"]) == ("marker", "m", known)
            assert details["observed_revision"] > known
            lost += 1
            (record,) = listed(runtime)
            assert record["revision"] >= details["observed_revision"]
            known = record["revision"]
        return won, lost

    with ThreadPoolExecutor(2) as pool:
        (one, one_lost), (two, two_lost) = pool.map(update, range(2))
    assert one_lost + two_lost > 0, "nobody raced"
    assert sorted(one + two) == list(range(2, UPDATES + 2))
    (record,) = listed(runtime)
    assert record["revision"] == UPDATES + 1
    expected = [("sdk.marker.created", 1), *(("sdk.marker.moved", revision) for revision in range(2, UPDATES + 2))]
    assert told(runtime, "m") == expected


def test_m1_m3_m5_a_marker_lives_dies_and_comes_back(stack: Hub) -> None:
    runtime = negotiated(stack, "one-marker")
    made = create(runtime, marker_id="m", topic_id="t", extensions={"colour": "red"}, position={**PLACE, "alt_m": 34})
    assert made.pop("updated_ts_ms") <= now_ms()
    assert made == {
        "marker_id": "m",
        "label": "a",
        "position": {**PLACE, "alt_m": 34},
        "topic_id": "t",
        "revision": 1,
        "extensions": {"colour": "red"},
    }
    moved = move(runtime, "m", 1).json()["marker"]
    assert (moved["revision"], moved["position"], moved["label"]) == (2, {"lat": 1.0, "lon": 0}, "a")
    again = error(runtime.ask("POST", "/markers", json={"marker_id": "m", "label": "b", "position": PLACE}), 409)
    assert (again["machine_code"], again["details"]["observed_revision"]) == (CONFLICT, 2)
    stale = error(delete(runtime, "m", 1), 409)
    assert stale["details"] == {"domain": "marker", "marker_id": "m", "expected_revision": 1, "observed_revision": 2}
    assert delete(runtime, "m", 2).json() == {"accepted": True, "marker_id": "m", "revision": 3}
    assert listed(runtime) == []
    assert delete(runtime, "m", 3).json() == {"accepted": False, "marker_id": "m"}
    assert code(move(runtime, "m", 3), 404) == ABSENT
    assert create(runtime, marker_id="m", label="b")["revision"] == 4
    assert [(one["label"], one["revision"]) for one in listed(runtime)] == [("b", 4)]
    assert told(runtime, "m") == [
        ("sdk.marker.created", 1),
        ("sdk.marker.moved", 2),
        ("sdk.marker.deleted", 3),
        ("sdk.marker.created", 4),
    ]
    assert delete(runtime, "never-was", 1).json() == {"accepted": False, "marker_id": "never-was"}


def test_m4_the_list_pages_and_filters_by_topic(stack: Hub) -> None:
    runtime = negotiated(stack, "many-markers")
    made = [create(runtime, topic_id=f"t{n % 2}") for n in range(7)]
    create(runtime, marker_id="bare")
    ids = {one["marker_id"] for one in made}
    assert {one["marker_id"] for one in listed(runtime, max=3)} == ids | {"bare"}
    assert listed(runtime, max=2) == listed(runtime)
    odd = [one for one in made if one["topic_id"] == "t1"]
    assert sorted(listed(runtime, topic_id="t1", max=1), key=str) == sorted(odd, key=str)
    other_topic = runtime.good("GET", "/markers", params={"topic_id": "t1", "max": 1})["next_cursor"]
    refused = runtime.ask("GET", "/markers", params={"topic_id": "t0", "cursor": other_topic})
    assert code(refused, 400) == "SDK_RUNTIME_INVALID_CURSOR"
    everything = listed(runtime)
    assert delete(runtime, everything[0]["marker_id"], 1).status_code == 200
    assert listed(runtime, max=1) == everything[1:]


def test_m4_markers_of_other_runtimes_and_tenants_are_elsewhere(stack: Hub) -> None:
    one, other = negotiated(stack, "place-one"), negotiated(stack, "place-two")
    elsewhere = negotiated(stack, "place-one", {"tenant": "marker-tenant"})
    create(one, marker_id="m")
    assert (listed(other), listed(elsewhere)) == ([], [])
    assert code(move(elsewhere, "m", 1), 404) == ABSENT
    assert create(elsewhere, marker_id="m")["revision"] == 1


class Died(BaseException):
    """The function's process ends here."""


def die(*_: Any) -> NoReturn:
    raise Died


def doomed(hub: Hub) -> ManageMarkers:
    """The markers function on the hub's own tables; it dies before it can commit an event."""
    rows, runtimes = Stores.of(hub).rows, Stores.of(hub).runtimes
    announce = Announce(rows, cast("Commit", die), lambda: os.urandom(16).hex(), die)
    return ManageMarkers(
        announce,
        rows,
        rows,
        runtimes,
        cast("KeyRing", None),
        Policy.of({}),
        lambda _tenant: str,
        now_ms,
        lambda: os.urandom(16).hex(),
    )


def somebody(hub: Hub) -> Identity:
    return Identity("C1", TENANT, frozenset(), ("*",), frozenset({"producer", "consumer"}), TENANT)


def settle(hub: Hub) -> None:
    answer = hub.client("lambda").invoke(FunctionName=hub.stack.functions["settle"], Payload=b"{}")
    assert "FunctionError" not in answer, answer["Payload"].read()


def test_m5_the_event_of_a_function_that_died_between_the_writes_appears(stack: Hub) -> None:
    runtime = negotiated(stack, "orphaned")
    with pytest.raises(Died):
        doomed(stack).create(somebody(stack), runtime.id, {"marker_id": "m", "label": "a", "position": PLACE})
    rows, group = Stores.of(stack).rows, marker_group(TENANT, runtime.id)
    row = rows.get(group, "m")
    assert row is not None
    assert row.pending is not None, "it died too late to prove anything"
    assert [one["revision"] for one in listed(runtime)] == [1]
    (intent,) = (one for one in rows.left_before(now_ms() + 1) if one.group == group)
    rows.leave(intent, now_ms() - LONG_AGO_MS)
    settle(stack)
    assert told(runtime, "m") == [("sdk.marker.created", 1)]
    settled = rows.get(group, "m")
    assert settled is not None
    assert settled.pending is None
    assert not [intent for intent in rows.left_before(now_ms() + 1) if intent.group == group]
    settle(stack)
    assert move(runtime, "m", 1).json()["marker"]["revision"] == 2
    assert told(runtime, "m") == [("sdk.marker.created", 1), ("sdk.marker.moved", 2)]


def test_m5_the_next_writer_tells_first_of_the_change_before_its_own(stack: Hub) -> None:
    runtime = negotiated(stack, "relieved")
    create(runtime, marker_id="m")
    body = {"position": PLACE, "expected_revision": 1}
    with pytest.raises(Died):
        doomed(stack).move(somebody(stack), runtime.id, "m", body)
    assert told(runtime, "m") == [("sdk.marker.created", 1)]
    assert delete(runtime, "m", 2).json()["revision"] == 3
    expected = [("sdk.marker.created", 1), ("sdk.marker.moved", 2), ("sdk.marker.deleted", 3)]
    assert told(runtime, "m") == expected
    settle(stack)
    assert told(runtime, "m") == expected, "settled twice, told once"
