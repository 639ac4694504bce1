"""M1–M5: revisions that grow by one, stale writes refused, and every change an event, whoever dies on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.ledger.domain.errors import Forbidden, Unavailable
from millrace.streams.application import markers as markers_module
from millrace.streams.application.markers import marker_group
from millrace.streams.domain.errors import (
    Absent,
    Conflict,
    EventTooLarge,
    InvalidArgument,
    InvalidCursor,
    InvalidState,
    SdkError,
)
from millrace.streams.domain.privacy import hasher
from tests.unit.streams.crashing_stores import MARKER_CRASHES, Crash, Death, crashing_hub
from tests.unit.streams.hub import RUNTIME, StreamsHub, event, odd, told

HERE, THERE = {"lat": 1.5, "lon": 2}, {"lat": -3, "lon": 4, "alt_m": 5}
CANARY = "canary-m"


class Map:
    """Somebody's view of a hub's markers."""

    def __init__(self, hub: StreamsHub | None = None, **claims: Any) -> None:
        self.hub = hub or StreamsHub()
        self.me = self.hub.identity(**claims)

    def create(self, label: str = "L", **sent: Any) -> dict[str, Any]:
        answer = self.hub.markers.create(self.me, RUNTIME, {"label": label, "position": HERE, **sent})
        assert answer["accepted"]
        record: dict[str, Any] = answer["marker"]
        return record

    def move(self, marker_id: str, revision: Any, **position: Any) -> dict[str, Any]:
        sent = {"position": position or THERE, "expected_revision": revision}
        answer = self.hub.markers.move(self.me, RUNTIME, marker_id, sent)
        assert answer["accepted"]
        record: dict[str, Any] = answer["marker"]
        return record

    def delete(self, marker_id: str, revision: Any) -> dict[str, Any]:
        return self.hub.markers.delete(self.me, RUNTIME, marker_id, revision)

    def page(
        self, cursor: str | None = None, limit: int | None = None, topic: str | None = None
    ) -> tuple[list[str], str | None]:
        page = self.hub.markers.list(self.me, RUNTIME, cursor, limit, topic)
        return [record["marker_id"] for record in page["markers"]], page["next_cursor"]

    def events(self) -> list[tuple[str, str]]:
        return [(e["event_id"], e["payload"]["extension_event_type"]) for e in self.hub.stored("markers")]


def test_a_revision_starts_at_1_and_grows_by_1_with_each_accepted_write() -> None:
    """M1: tombstones count, too; a deleted id goes on where it was."""
    view = Map()
    assert view.create(marker_id="m")["revision"] == 1
    assert view.move("m", 1)["revision"] == 2
    assert view.move("m", 2)["revision"] == 3
    assert view.delete("m", 3) == {"accepted": True, "marker_id": "m", "revision": 4}
    assert view.create(marker_id="m")["revision"] == 5
    assert view.move("m", 5)["revision"] == 6


def test_a_record_has_what_was_sent_and_what_the_hub_knows() -> None:
    """M4."""
    view = Map()
    view.hub.clock.ms = 77
    record = view.create("Depot", marker_id="m", topic_id="t", extensions={"x": [1]})
    assert record == {
        "marker_id": "m",
        "label": "Depot",
        "position": HERE,
        "topic_id": "t",
        "extensions": {"x": [1]},
        "revision": 1,
        "updated_ts_ms": 77,
    }
    view.hub.clock.ms = 99
    assert view.move("m", 1) == {**record, "position": THERE, "revision": 2, "updated_ts_ms": 99}
    page = view.hub.markers.list(view.me, RUNTIME, None, None, None)
    assert page == {"markers": [{**record, "position": THERE, "revision": 2, "updated_ts_ms": 99}], "next_cursor": None}


def test_a_marker_without_an_id_gets_one_of_its_own() -> None:
    """M3."""
    view = Map()
    made = {view.create()["marker_id"] for _ in range(5)}
    assert len(made) == 5
    assert sorted(made) == view.page()[0]


@pytest.mark.parametrize("bad", [0, -1, None, True, "1", 1.0])
def test_a_change_needs_an_expected_revision(bad: Any) -> None:
    """M2."""
    view = Map()
    view.create(marker_id="m")
    for change in (view.move, view.delete):
        with pytest.raises(InvalidArgument) as refusal:
            change("m", bad)
        assert refusal.value.details["field"] == "expected_revision"
    assert len(view.events()) == 1


@pytest.mark.parametrize("expected", [1, 3, 99])
def test_a_stale_write_is_a_conflict_that_changes_nothing(expected: int) -> None:
    """M3: with the four details."""
    view = Map()
    view.create(marker_id="m")
    view.move("m", 1)
    before = (view.hub.rows.items.copy(), view.events())
    for change in (view.move, view.delete):
        with pytest.raises(Conflict) as refusal:
            change("m", expected)
        assert refusal.value.status == 409
        assert refusal.value.details == {
            "domain": "marker",
            "marker_id": "m",
            "expected_revision": expected,
            "observed_revision": 2,
        }
    assert (view.hub.rows.items, view.events()) == before
    assert not view.hub.rows.left, "a refused change leaves no intent behind"


def test_the_id_of_a_live_marker_cannot_be_created_again() -> None:
    """M3."""
    view = Map()
    view.create(marker_id="m")
    view.move("m", 1)
    with pytest.raises(Conflict) as refusal:
        view.create(marker_id="m")
    assert refusal.value.details == {
        "domain": "marker",
        "marker_id": "m",
        "expected_revision": 0,
        "observed_revision": 2,
    }


def test_deleting_an_absent_marker_is_not_accepted_and_moving_one_not_found() -> None:
    """M3."""
    view = Map()
    assert view.delete("m", 1) == {"accepted": False, "marker_id": "m"}
    view.create(marker_id="m")
    view.delete("m", 1)
    for revision in (1, 2, 9):
        assert view.delete("m", revision) == {"accepted": False, "marker_id": "m"}
    for marker_id in ("m", "never"):
        with pytest.raises(Absent) as refusal:
            view.move(marker_id, 1)
        assert (refusal.value.status, refusal.value.code) == (404, "SDK_RUNTIME_NOT_FOUND")
    assert not view.hub.rows.left
    assert [kind for _, kind in view.events()] == ["sdk.marker.created", "sdk.marker.deleted"]


def test_every_change_is_an_event_in_revision_order() -> None:
    """M5: in the stream markers, as an ExtensionEvent with the record."""
    view = Map()
    view.create(marker_id="m", topic_id="t")
    view.create(marker_id="n")
    view.move("m", 1)
    view.delete("m", 2)
    view.create("again", marker_id="m")
    assert view.events() == [
        ("marker-m-1", "sdk.marker.created"),
        ("marker-n-1", "sdk.marker.created"),
        ("marker-m-2", "sdk.marker.moved"),
        ("marker-m-3", "sdk.marker.deleted"),
        ("marker-m-4", "sdk.marker.created"),
    ]
    polled = told(view.hub.next(stream="markers"))
    assert [one["seq_no"] for one in polled] == [1, 2, 3, 4, 5]
    assert {one["event_type"] for one in polled} == {"ExtensionEvent"}
    assert polled[2]["payload"]["marker"] == {
        "marker_id": "m",
        "label": "L",
        "topic_id": "t",
        "position": THERE,
        "revision": 2,
        "updated_ts_ms": view.hub.clock.ms,
    }


def test_secrets_of_extensions_are_gone_and_sensitive_values_hashed() -> None:
    """P2, P3: in the answer, the row, the list and the event."""
    view = Map()
    sent = {"auth_token": CANARY, "peer-id": "bob", "deep": [{"session-secret": CANARY, "traceId": "bob"}]}
    record = view.create(marker_id="m", extensions=sent, private_key_material=CANARY)
    hashed = hasher(b"hash key of default")("bob")
    assert record["extensions"] == {"peer-id": hashed, "deep": [{"traceId": hashed}]}
    view.move("m", 1)
    everything = repr(
        (view.hub.rows.items, view.hub.log.pages, view.hub.markers.list(view.me, RUNTIME, None, None, None))
    )
    assert CANARY not in everything
    assert "bob" not in everything


def test_the_list_pages_in_order_until_there_is_no_cursor() -> None:
    """M4."""
    view = Map()
    names = sorted(f"m{n:02}" for n in range(23))
    for name in reversed(names):
        view.create(marker_id=name)
    view.delete("m07", 1)
    live = [name for name in names if name != "m07"]
    for limit in (1, 5, 22, 23, None):
        seen, cursor = view.page(None, limit)
        while cursor is not None:
            assert len(seen) > 0
            page, cursor = view.page(cursor, limit)
            seen += page
        assert seen == live
    assert view.page(None, 22)[1] is None, "the last full page knows that it is the last"


@pytest.mark.parametrize("limit", [0, 501, -1])
def test_the_lists_max_has_its_range(limit: int) -> None:
    """M4."""
    view = Map()
    with pytest.raises(InvalidArgument) as refusal:
        view.page(None, limit)
    assert refusal.value.details["field"] == "max"
    assert view.page(None, 1) == view.page(None, 500) == ([], None)


def test_the_list_can_be_of_one_topic() -> None:
    """M4: and its cursors are that topic's."""
    view = Map()
    for n in range(6):
        view.create(marker_id=f"m{n}", **({"topic_id": f"t{n % 2}"} if n < 5 else {}))
    assert view.page(topic="t0") == (["m0", "m2", "m4"], None)
    assert view.page(topic="t1") == (["m1", "m3"], None)
    assert view.page(topic="none") == ([], None)
    page, cursor = view.page(None, 1, "t1")
    assert page == ["m1"]
    assert view.page(cursor, 5, "t1") == (["m3"], None)
    for other in (None, "t0"):
        with pytest.raises(InvalidCursor):
            view.page(cursor, 5, other)


def test_a_long_stretch_of_other_markers_gives_a_short_page_with_a_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    """M4: one page looks at so many rows and no more; the reader goes on until there is no cursor."""
    monkeypatch.setattr(markers_module, "SCANNED", 3)
    view = Map()
    for n in range(10):
        view.create(marker_id=f"m{n}", topic_id="t" if n in (4, 9) else "other")
    seen, cursor, pages = list[str](), None, 0
    while pages == 0 or cursor is not None:
        page, cursor = view.page(cursor, 5, "t")
        seen, pages = [*seen, *page], pages + 1
    assert (seen, pages) == (["m4", "m9"], 4)


@pytest.mark.parametrize("cursor", ["", "x", "AAAA"])
def test_a_foreign_list_cursor_is_invalid(cursor: str) -> None:
    """M4, T6."""
    with pytest.raises(InvalidCursor):
        Map().page(cursor)


def test_writing_is_for_producers_and_reading_for_consumers_of_the_runtime() -> None:
    """T12."""
    hub = StreamsHub()
    reader, writer = Map(hub, roles=["consumer"]), Map(hub, roles=["producer"])
    stranger = Map(hub, partitions=["runtime:r2"])
    writer.create(marker_id="m")
    assert reader.page()[0] == ["m"]
    for attempt in (
        reader.create,
        lambda: reader.move("m", 1),
        lambda: reader.delete("m", 1),
        writer.page,
        stranger.create,
        lambda: stranger.move("m", 1),
        lambda: stranger.delete("m", 1),
        stranger.page,
    ):
        with pytest.raises(Forbidden):
            attempt()


def test_writes_need_negotiation() -> None:
    """T1, T5."""
    view = Map(StreamsHub(negotiated=False))
    with pytest.raises(InvalidState):
        view.create()
    for change in (view.move, view.delete):
        with pytest.raises(InvalidState):
            change("m", 1)


@pytest.mark.parametrize("marker_id", ["", "a/b", "-", "x" * 129])
def test_a_bad_marker_id_in_the_path_is_refused(marker_id: str) -> None:
    """M3."""
    view = Map()
    for change in (view.move, view.delete):
        with pytest.raises(InvalidArgument) as refusal:
            change(marker_id, 1)
        assert refusal.value.details["field"] == "marker_id"


def test_a_marker_too_large_for_an_event_is_refused() -> None:
    """M5, T10: what could not be told of is not changed."""
    view = Map()
    with pytest.raises(EventTooLarge):
        view.create(extensions={"x": "y" * 100_000})
    assert (view.page(), view.hub.rows.left) == (([], None), {})


@pytest.mark.parametrize("kind", ["create", "move", "delete"])
def test_a_markers_event_has_at_most_what_the_session_negotiated(kind: str) -> None:
    """M5, T10: exactly the limit passes; one byte more is refused, and nothing is written: no row, intent or event."""
    view = Map()
    view.create(marker_id="m", extensions={"pad": "x" * 300})
    changes: dict[str, Callable[[], Any]] = {
        "create": lambda: view.create(marker_id="n", extensions={"pad": "y" * 300}),
        "move": lambda: view.move("m", 1),
        "delete": lambda: view.delete("m", 1),
    }
    before = (dict(view.hub.rows.items), view.hub.stored("markers"))
    view.hub.agree(limits={"max_event_bytes": 300})
    with pytest.raises(EventTooLarge) as refusal:
        changes[kind]()
    details = dict(refusal.value.details)
    needed = details.pop("actual_bytes")
    assert details == {"field": "marker", "max_event_bytes": 300}
    view.hub.agree(limits={"max_event_bytes": needed - 1})
    with pytest.raises(EventTooLarge):
        changes[kind]()
    assert (dict(view.hub.rows.items), view.hub.stored("markers"), view.hub.rows.left) == (*before, {})
    view.hub.agree(limits={"max_event_bytes": needed})
    changes[kind]()
    payload = view.hub.stored("markers")[-1]["payload"]
    assert len(json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()) == needed


def test_a_move_takes_extensions_and_leaves_them_where_it_sends_none() -> None:
    """M4, M5, P2, P3: in the record, the list and the event; secrets gone, sensitive values hashed."""
    view = Map()
    view.create(marker_id="m", extensions={"a": 1, "b": 2})

    def move(revision: int, **sent: Any) -> dict[str, Any]:
        asked = {"position": THERE, "expected_revision": revision, **sent}
        record: dict[str, Any] = view.hub.markers.move(view.me, RUNTIME, "m", asked)["marker"]
        assert view.hub.stored("markers")[-1]["payload"]["marker"] == record
        return record

    assert move(1)["extensions"] == {"a": 1, "b": 2}
    assert move(2, extensions=None)["extensions"] == {"a": 1, "b": 2}
    hashed = hasher(b"hash key of default")("bob")
    sent = {"c": 3, "peer_id": "bob", "auth_token": CANARY}
    assert move(3, extensions=sent)["extensions"] == {"c": 3, "peer_id": hashed}
    assert move(4, extensions={})["extensions"] == {}
    with pytest.raises(InvalidArgument) as refusal:
        move(5, auth_token=CANARY)
    assert refusal.value.details["field"] == "auth_token", "a move has no place for it"
    for bad in odd({"Bad Key": 1}, [], "x"):
        with pytest.raises(InvalidArgument) as refusal:
            move(5, extensions=bad)
        assert refusal.value.details["field"].startswith("extensions")


def test_a_marker_that_was_stored_with_other_keys_stays_readable_and_can_be_moved() -> None:
    """M4: the form of keys is a rule of the door."""
    view = Map()
    view.create(marker_id="m", extensions={"old": 1})
    group, row = marker_group("default", RUNTIME), view.hub.rows.get(marker_group("default", RUNTIME), "m")
    assert row is not None
    record = {**row.content["record"], "extensions": {"Old Key": 1}}
    view.hub.rows.items[group, "m"] = replace(row, content={**row.content, "record": record})
    assert view.move("m", 1)["extensions"] == {"Old Key": 1}


def test_tenants_and_runtimes_have_markers_of_their_own() -> None:
    """M3."""
    hub = StreamsHub()
    hub.agree("r2")
    hub.negotiate(hub.identity(tenant="t2"), RUNTIME, {"supported_contract_versions": [2]})
    ours, theirs = Map(hub), Map(hub, tenant="t2")
    assert ours.create(marker_id="m")["revision"] == theirs.create(marker_id="m")["revision"] == 1
    ours.move("m", 1)
    assert theirs.move("m", 1)["revision"] == 2
    sent = {"label": "L", "position": HERE, "marker_id": "m"}
    assert hub.markers.create(hub.identity(), "r2", sent)["marker"]["revision"] == 1


@pytest.mark.parametrize("crash", MARKER_CRASHES)
def test_whoever_dies_on_the_way_the_event_of_a_change_that_happened_follows(crash: str) -> None:
    """M5: the settling function finds what is left, and only after that long."""
    hub, fuse = crashing_hub()
    view = Map(hub)
    view.create(marker_id="m")
    fuse.at, fuse.error = crash, Death
    with pytest.raises(Death):
        view.move("m", 1)
    hub.restart()
    row = hub.markers.list(view.me, RUNTIME, None, None, None)["markers"][0]
    before = view.events()
    hub.clock.advance(60_000)
    assert hub.settle_markers(60_000) == 0
    assert view.events() == before, "its process might still be alive"
    hub.clock.advance(1)
    hub.settle_markers(60_000)
    assert [id_ for id_, _ in view.events()] == [f"marker-m-{n}" for n in range(1, row["revision"] + 1)]
    assert not hub.rows.left
    assert hub.settle_markers(0) == 0, "settling again finds nothing"
    assert view.move("m", row["revision"])["revision"] == row["revision"] + 1


@pytest.mark.parametrize("crash", ["after put", "before append", "after append", "before settle"])
def test_the_next_change_sees_to_the_event_before_it(crash: str) -> None:
    """M5: so events stand in revision order, whoever comes first."""
    hub, fuse = crashing_hub()
    view = Map(hub)
    view.create(marker_id="m")
    fuse.at, fuse.error = crash, Death
    with pytest.raises(Death):
        view.move("m", 1)
    assert view.move("m", 2)["revision"] == 3
    assert [id_ for id_, _ in view.events()] == ["marker-m-1", "marker-m-2", "marker-m-3"]
    hub.clock.advance(1)
    assert hub.settle_markers() == 0
    assert not hub.rows.left


@pytest.mark.parametrize("crash", ["before append", "after append", "before settle", "before clear"])
def test_a_change_that_is_durable_is_answered_though_its_event_has_to_wait(crash: str) -> None:
    """M5: storage failed after the row was written; the event follows."""
    hub, fuse = crashing_hub()
    view = Map(hub)
    fuse.at, fuse.error = crash, Crash
    assert view.create(marker_id="m")["revision"] == 1
    hub.clock.advance(1)
    hub.settle_markers()
    assert view.events() == [("marker-m-1", "sdk.marker.created")]
    assert not hub.rows.left


@pytest.mark.parametrize("crash", ["before leave", "after leave", "before put", "after put"])
def test_a_change_that_may_not_have_happened_is_told_to_be_unknown(crash: str) -> None:
    """T12: retryable; a retry of what had happened meets its own revision."""
    hub, fuse = crashing_hub()
    view = Map(hub)
    view.create(marker_id="m")
    fuse.at, fuse.error = crash, Crash
    with pytest.raises(Unavailable):
        view.move("m", 1)
    if crash == "after put":
        with pytest.raises(Conflict) as refusal:
            view.move("m", 1)
        assert refusal.value.details["observed_revision"] == 2
    else:
        assert view.move("m", 1)["revision"] == 2


def test_settling_stops_when_its_time_is_up() -> None:
    """M5: and goes on the next time."""
    hub, fuse = crashing_hub()
    view = Map(hub)
    for name in ("a", "b", "c"):
        fuse.at, fuse.error = "before append", Death
        with pytest.raises(Death):
            view.create(marker_id=name)
    hub.clock.advance(1)
    left = iter([True, False])
    assert hub.settle_markers(0, lambda: next(left)) == 1
    assert hub.settle_markers() == 2
    assert sorted(id_ for id_, _ in view.events()) == ["marker-a-1", "marker-b-1", "marker-c-1"]


changes = st.tuples(
    st.sampled_from(["create", "move", "delete"]),
    st.sampled_from(["a", "b"]),
    st.integers(0, 2),
    st.sampled_from(["", "", "", *MARKER_CRASHES]),
)


@given(st.lists(changes, max_size=20))
@settings(max_examples=80)
def test_any_sequence_of_changes_and_deaths_leaves_every_revision_told_in_order(done: list[Any]) -> None:
    """M1, M3, M5: revisions are 1..n per marker, and so are its events."""
    hub, fuse = crashing_hub()
    view, known = Map(hub), {"a": (0, False), "b": (0, False)}
    for action, name, behind, crash in done:
        fuse.at, fuse.error = crash, Death
        revision, live = known[name]
        expected = max(1, revision - behind)
        allowed = not live if action == "create" else live and expected == revision
        happened = None
        try:
            if action == "create":
                happened = view.create(marker_id=name)["revision"] == revision + 1
            elif action == "move":
                happened = view.move(name, expected)["revision"] == revision + 1
            else:
                happened = view.delete(name, expected)["accepted"]
            assert happened == allowed
        except SdkError:
            assert not allowed
        except Death:
            hub.restart()
            row = hub.rows.items.get((markers_module.marker_group("default", RUNTIME), name))
            happened = row is not None and row.version > revision
        fuse.at = ""
        if happened:
            known[name] = (revision + 1, action != "delete")
    hub.clock.advance(1)
    hub.settle_markers()
    for name, (revision, _) in known.items():
        told_of = [id_ for id_, _ in view.events() if id_.startswith(f"marker-{name}-")]
        assert told_of == [f"marker-{name}-{n}" for n in range(1, revision + 1)]
    assert view.page()[0] == [name for name, (_, live) in known.items() if live]
    assert not hub.rows.left
    assert not [row for row in hub.rows.items.values() if row.pending]


def test_no_refusal_of_a_marker_holds_a_value() -> None:
    """T12, P2."""
    view = Map()
    view.create(marker_id="m")
    bad: list[dict[str, Any]] = [
        {"label": [CANARY]},
        {"topic_id": {"x": CANARY}},
        {"position": {"lat": CANARY, "lon": 1}},
        {"extensions": [CANARY]},
        {"marker_id": f"/{CANARY}"},
        {"extensions": {f"k{n}": CANARY for n in range(33)}},
        {"extensions": {"x": CANARY * 20_000}},
        {"other": CANARY},
        {"marker_id": "m", "label": CANARY},
    ]
    for sent in bad:
        with pytest.raises(SdkError) as refusal:
            view.create(**sent)
        assert CANARY not in json.dumps(refusal.value.body())


def test_markers_do_not_touch_what_callers_emit() -> None:
    """M5: their stream is one of the runtime's, next to the others."""
    view = Map()
    view.create(marker_id="m")
    view.hub.send(event("e"))
    status = view.hub.status(view.me, RUNTIME)
    assert [(one["stream_id"], one["seq_no"]) for one in status["streams"]] == [("markers", 1), ("s", 1)]
