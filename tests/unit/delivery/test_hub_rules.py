"""The hub's own rules of delivery: names outside the hub, batches that come in, runs as rows, wake-ups."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.delivery.adapters.wakes import SqsWakes, body_of, wake_of
from millrace.delivery.domain.inbox import NothingToKeep, Refused, check_batch
from millrace.delivery.domain.outcomes import Response
from millrace.delivery.domain.ranges import Range, unfold
from millrace.delivery.domain.rows import Row, after_changes, apart, changes, delivered_within
from millrace.delivery.domain.sources import Source, heard, inside, outside, outside_id, place_of, several_journals
from millrace.delivery.domain.states import Delivery, Status
from millrace.delivery.ports.targets import Wake
from millrace.delivery.receivers.forgiving import Forgiving
from millrace.delivery.receivers.outbound import Outbound
from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import Ledger, join_key
from millrace.ledger.domain.page import Draft, Event, Origin, Record

NAMES = st.text(min_size=1, max_size=20)


def told(ledger: str, id_: str, content: Any) -> tuple[str, str, Any]:
    event = Event(7, Record(id_, b"", canonical(content)), 1_700_000_000_000, Origin("C1"))
    event_id, kind, body = outside(ledger, event)
    return event_id, kind, json.loads(body)


def test_an_event_of_the_journal_goes_out_as_it_was_stored() -> None:
    """D6"""
    event = {"event_id": "e:1", "event_type": "build.done", "x": [1.5, None]}
    assert told("delivery#acme#team", "e:1", event) == ("e:1", "build.done", event)


def test_an_event_of_another_contract_goes_out_in_its_envelope_with_an_id_of_its_own() -> None:
    """D6, C1"""
    content = {"event": {"type": "order.paid", "payload": {"n": 1}}, "partitions": ["p"]}
    event_id, kind, body = told("sync#acme#demo", "o-1", content)
    assert (event_id, kind) == ("sync:demo:o-1", "sync.order.paid")
    assert body == {
        "event_id": "sync:demo:o-1",
        "event_type": "sync.order.paid",
        "event_version": 1,
        "idempotency_key": "o-1",
        "occurred_at": "2023-11-14T22:13:20Z",
        "source": "millrace/sync/demo",
        "sequence_position": 7,
        "payload": content,
    }


@pytest.mark.parametrize("id_", ["sync:demo:o-1", "delivery:red:e-1", "streams:x", "catalog:"])
def test_an_id_of_the_journal_is_never_another_events_name(id_: str) -> None:
    """D6: what a producer calls its event cannot stand for one that the hub names."""
    event = {"event_id": id_, "event_type": "build.done", "x": [1.5, None]}
    event_id, _, body = told("delivery#acme#red", id_, event)
    assert event_id == "delivery:red:" + id_.replace(":", "%3A")
    assert body == {**event, "event_id": event_id}
    assert inside("acme", event_id) == (Ledger("delivery#acme#red", "delivery#acme#red"), id_)


@given(*[st.sampled_from(["sync#t#a", "sync#t#red", "delivery#t#red", "delivery#t#blue"]), NAMES] * 2, st.booleans())
def test_names_of_one_target_differ_unless_the_events_are_the_same(
    one: str, first: str, other: str, second: str, scoped: bool
) -> None:
    """D6: of one team's journal without scopes, of several with them."""
    if not scoped:
        one, other = (name.replace("blue", "red") for name in (one, other))
    names = outside_id(one, first, scoped=scoped), outside_id(other, second, scoped=scoped)
    assert (names[0] == names[1]) == ((one, first) == (other, second))


@pytest.mark.parametrize(
    ("scopes", "several"),
    [((), False), (("red",), False), (("red", "red"), False), (("red", "blue"), True), (("*",), True), (("r*",), True)],
)
def test_a_target_may_get_several_journals_by_names_or_by_a_pattern(scopes: tuple[str, ...], several: bool) -> None:
    assert several_journals([Source("sync", "*"), *(Source("delivery", scope) for scope in scopes)]) is several


@given(st.sampled_from(["sync", "realtime", "catalog"]), NAMES, NAMES, NAMES)
def test_a_name_outside_leads_back_to_its_ledger_and_id(contract: str, tenant: str, scope: str, id_: str) -> None:
    ledger = join_key(contract, tenant, scope)
    found = inside(tenant, outside_id(ledger, id_))
    assert found is not None
    assert (found[0].name, found[1]) == (ledger, id_)


@given(NAMES, NAMES, NAMES, NAMES)
def test_two_events_never_share_a_name_outside(a: str, b: str, c: str, d: str) -> None:
    first, second = outside_id(join_key("sync", "t", a), b), outside_id(join_key("sync", "t", c), d)
    assert (first == second) == ((a, b) == (c, d))


def test_a_long_id_is_shortened_to_one_that_every_receiver_takes() -> None:
    long = outside_id("sync#t#demo", "x" * 1024)
    assert len(long) < 1024
    assert long != outside_id("sync#t#demo", "x" * 1023 + "y")


@pytest.mark.parametrize(
    ("ledger", "pattern", "hears"),
    [
        ("sync#t#demo", "demo", True),
        ("sync#t#demo2", "demo", False),
        ("sync#t#demo2", "demo*", True),
        ("sync#t#any", "*", True),
        ("streams#t#rt#s", "rt/*", True),
        ("streams#t#rt2#s", "rt/*", False),
        ("realtime#t#demo", "demo", False),
        ("audit#t", "*", False),
    ],
)
def test_a_source_hears_of_what_its_pattern_names(ledger: str, pattern: str, hears: bool) -> None:
    contract = "streams" if "/" in pattern else "sync"
    assert heard([Source(contract, pattern)], ledger) is hears


def test_a_realtime_id_is_looked_for_in_its_whole_tenant() -> None:
    found = inside("t", "realtime:call-1:e1")
    assert found == (Ledger("realtime#t#call-1", "realtime#t"), "e1")
    assert place_of("streams#t#a#b").scope == "a/b"


def test_a_batch_is_checked_event_by_event() -> None:
    """D8"""
    good = {"event_id": "e", "event_type": "t", "deep": {"x": 1}}
    checked = check_batch(
        {"events": [good, None, {"event_id": 5}, {"event_id": "x" * 1025, "event_type": "t"}], "more": 1}
    )
    assert isinstance(checked[0], Draft)
    assert json.loads(checked[0].body) == good
    assert [one.event_id for one in checked if isinstance(one, Refused)] == [None, None, None]


def test_an_event_that_is_too_large_hurts_no_neighbour() -> None:
    checked = check_batch(
        {"events": [{"event_id": "a", "event_type": "t", "x": "y" * 300_000}, {"event_id": "b", "event_type": "t"}]}
    )
    assert isinstance(checked[0], Refused)
    assert checked[0].event_id == "a"
    assert isinstance(checked[1], Draft)


@pytest.mark.parametrize("body", [None, [], {}, {"events": []}, {"events": {}}, {"events": [{}] * 1001}, 7])
def test_what_is_no_batch_is_refused_as_a_whole(body: Any) -> None:
    with pytest.raises(BadRequest) as refused:
        check_batch(body)
    assert not isinstance(refused.value, NothingToKeep)


def test_nothing_to_keep_says_why_for_each() -> None:
    with pytest.raises(NothingToKeep) as refused:
        check_batch({"events": [{"event_id": "a"}, 5]})
    assert [(one["event_id"], one["status"]) for one in refused.value.details["results"]] == [
        ("a", "rejected"),
        (None, "rejected"),
    ]


DELIVERIES = st.builds(
    Delivery, st.sampled_from(list(Status)), st.just(1), st.just(0), st.integers(0, 3), st.just(None), st.just("")
)
ROWS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2), DELIVERIES), max_size=6)


def rows_of(given_rows: list[tuple[int, int, Delivery]]) -> list[Row]:
    rows, at = list[Row](), 1
    for length, gap, delivery in given_rows:
        rows.append(Row(Range(at + gap, at + gap + length - 1, delivery), 1))
        at += gap + length
    return rows


@given(ROWS, st.dictionaries(st.integers(1, 30), DELIVERIES, max_size=20))
def test_changed_rows_say_of_each_position_what_was_settled(
    given_rows: list[tuple[int, int, Delivery]], settled: dict[int, Delivery]
) -> None:
    """D4: what is delivered stays so; all else has its new delivery; no row ends where none ended before, or began."""
    rows = rows_of(given_rows)
    before = dict(unfold(row.run for row in rows))
    made = changes(rows, settled)
    after = dict(unfold(after_changes(rows, made)))
    kept = {at: one for at, one in before.items() if one.delivered}
    assert after == {**before, **settled, **kept}
    for cut in made.cuts:
        assert (cut.runs[0].first, cut.runs[-1].last) == (cut.old.run.first, cut.old.run.last)
    assert delivered_within(after_changes(rows, made), 3, 20) == sum(
        one.delivered for at, one in after.items() if 3 < at <= 20
    )


def test_rows_that_overlap_are_read_as_if_they_did_not() -> None:
    one = Delivery(Status.SUCCESS, 1, 0, 0)
    rows = [Row(Range(1, 5, one), 1), Row(Range(1, 9, one), 1)]
    assert [(row.run.first, row.run.last) for row in apart(rows)] == [(1, 5), (6, 9)]


@pytest.mark.parametrize("answers", [[200], [415, 200, 200]])
def test_a_target_that_takes_no_compressed_bodies_gets_them_plain_from_then_on(
    monkeypatch: pytest.MonkeyPatch, answers: list[int]
) -> None:
    posted: list[tuple[Mapping[str, str], bytes]] = []
    left = list(answers)

    def post(_self: Outbound, _url: str, headers: Mapping[str, str], body: bytes) -> Response:
        posted.append((headers, body))
        return Response(left.pop(0))

    monkeypatch.setattr(Outbound, "post", post)
    outbound = Forgiving()
    for _ in range(2 if 415 in answers else 1):
        sent = outbound.post("https://x/", {"Content-Encoding": "gzip", "webhook-id": "1"}, gzip.compress(b"{}"))
        assert sent.status == 200
    assert [headers.get("Content-Encoding") for headers, _ in posted] == ["gzip", None, None][: len(answers)]
    assert all(body == b"{}" and headers["webhook-id"] == "1" for headers, body in posted[1:])


class Queue:
    def __init__(self) -> None:
        self.calls: list[list[dict[str, Any]]] = []

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        self.calls.append(Entries)
        return {}


def test_wake_ups_are_sent_ten_at_a_time_with_ledgers_that_fit() -> None:
    queue: Any = Queue()
    wakes = [
        Wake("t", "a", tuple(f"sync#t#{n}" for n in range(45))),
        Wake("t", "b", scan=True),
        Wake("t", "a", most_events=500),
    ]
    SqsWakes(queue, "url").send(wakes * 3)
    entries = [entry for call in queue.calls for entry in call]
    assert max(map(len, queue.calls)) <= 10
    assert len(entries) == 15
    asked = {ledger for entry in entries for ledger in wake_of(entry["MessageBody"]).ledgers}
    assert len(asked) == 45
    assert [wake_of(body_of(wake)) for wake in wakes] == wakes
