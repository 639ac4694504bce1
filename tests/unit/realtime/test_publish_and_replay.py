"""R4–R9 on the in-memory adapters: publishing, replay, checkpoints, transcripts, counters."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryProjections, MemoryState, in_turn
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.application.prune import Prune
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.instants import instant
from millrace.ledger.domain.names import realtime_ledger
from millrace.realtime.adapters.memory import MemoryRealtime, MemoryTimes
from millrace.realtime.application import order_in_time, read_session
from millrace.realtime.application.count_events import RealtimeMetrics
from millrace.realtime.application.fold_transcripts import FoldTranscripts
from millrace.realtime.application.order_in_time import OrderInTime
from millrace.realtime.application.publish import Publish, Published
from millrace.realtime.application.read_session import ReadSession
from millrace.realtime.application.replay import Replay, ReplayPage, ReplayRequest
from millrace.realtime.application.take_events import TakeEvents
from millrace.realtime.application.transcripts import SessionTranscript, Transcripts
from millrace.realtime.domain.transcript import materialise
from millrace.realtime.domain.verdict import Invalid, Valid
from millrace.realtime.ports import Watermark
from millrace.sync.adapters.memory import MemoryIndex

ME = Identity("me", "t", frozenset(), ("session:*",), frozenset({"producer", "consumer", "operator"}), "t")
SESSION = realtime_ledger("t", "s1")


@dataclass
class Hub:
    claims: MemoryClaims = field(default_factory=MemoryClaims)
    log: MemoryLog = field(default_factory=MemoryLog)
    state: MemoryState = field(default_factory=MemoryState)
    index: MemoryIndex = field(default_factory=MemoryIndex)
    times: MemoryTimes = field(default_factory=MemoryTimes)
    numbers: Any = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.realtime = MemoryRealtime(self.state)
        self.projections = MemoryProjections()

    def commit(self) -> Commit:
        heads = Heads(lambda: 0)
        nonce = lambda: b"%d" % next(self.numbers)  # noqa: E731
        return Commit(self.claims, self.log, self.state, heads, in_turn, lambda: 0, nonce, lambda attempt: None)

    def publish(self, *events: dict[str, Any], identity: Identity = ME) -> list[Published]:
        return Publish(self.commit(), in_turn)(identity, [Valid(event, instant(event["ts"])) for event in events])

    def replayer(self) -> Replay:
        return Replay(self.reader(), OrderInTime(self.reader(), self.times), self.realtime)

    def reader(self) -> ReadSession:
        return ReadSession(self.log, self.state, Heads(lambda: 0), in_turn)

    def replay(self, **asked: Any) -> ReplayPage:
        return self.replayer()(ME, "s1", ReplayRequest(**asked))

    def folder(self) -> FoldTranscripts:
        return FoldTranscripts(self.reader(), self.projections)

    def transcript(self, **how: Any) -> SessionTranscript:
        return Transcripts(self.folder())(ME, "s1", **how)


def event(id_: str, second: int = 0, session: str = "s1", **changes: Any) -> dict[str, Any]:
    return {
        "eventId": id_,
        "sessionId": session,
        "ts": f"2026-02-16T10:00:{second:02d}.000Z",
        "type": "call.connecting",
        "payload": {"callId": "c"},
        "schemaVersion": "1.0",
        **changes,
    }


def partial(id_: str, utterance: str, second: int, kind: str = "partial") -> dict[str, Any]:
    payload = {"utteranceId": utterance, "speaker": "user", "text": id_, "startMs": 0, "endMs": 1}
    return event(id_, second, type=f"transcript.{kind}", payload=payload)


def ids(page: ReplayPage) -> list[str]:
    return [one["eventId"] for one in page.events]


def test_r5_the_same_event_again_answers_the_stored_one() -> None:
    hub = Hub()
    (first,) = hub.publish(event("a"))
    (again,) = hub.publish({**event("a"), "ts": "2026-02-16T10:00:00.000000+00:00"})
    assert (first.deduped, again.deduped) == (False, True)
    assert first.event == again.event == {**event("a"), "sequence": 1}


@pytest.mark.parametrize(
    "changes", [{"payload": {"callId": "other"}}, {"sessionId": "s2"}, {"ts": "2026-02-16T10:00:01Z"}]
)
def test_r5_a_used_id_with_other_content_or_session_conflicts_and_shows_nothing(
    changes: dict[str, Any],
) -> None:
    hub = Hub()
    hub.publish(event("a"))
    (refused,) = hub.publish({**event("a"), **changes})
    assert refused == Published(problem="conflict")
    assert ids(hub.replay(after_sequence=0)) == ["a"]


def test_r5_an_id_is_used_once_in_a_tenant_and_freely_in_another() -> None:
    hub = Hub()
    hub.publish(event("a"))
    other = Identity("me", "t2", frozenset(), ("*",), frozenset({"producer"}), "t2")
    assert hub.publish(event("a", session="s9"), identity=other)[0].event is not None


def test_r9_a_batch_has_one_result_each_and_bad_ones_hurt_nobody() -> None:
    hub = Hub()
    narrow = Identity("me", "t", frozenset(), ("session:s1",), frozenset({"producer"}), "t")
    results = hub.publish(
        event("a"),
        event("b", session="s2"),
        event("a"),
        event("a", payload={"callId": "x"}),
        event("c", payload={"callId": "x" * 100_000}),
        event("d"),
        identity=narrow,
    )
    assert [r.problem for r in results] == ["", "forbidden", "", "conflict", "too_large", ""]
    assert [r.event and r.event["sequence"] for r in results] == [1, None, 1, None, None, 2]
    assert [r.deduped for r in results] == [False, False, True, False, False, False]


def test_r6_by_sequence_is_exclusive_and_pages() -> None:
    hub = Hub()
    hub.publish(*(event(f"e{n}", 59 - n) for n in range(5)))
    page = hub.replay(after_sequence=1, limit=2)
    assert (ids(page), page.has_more) == (["e1", "e2"], True)
    assert page.watermark is not None
    assert page.watermark.sequence == 3
    last = hub.replay(after_sequence=3, limit=2)
    assert (ids(last), last.has_more) == (["e3", "e4"], False)
    assert hub.replay(after_sequence=99).events == []


def test_r6_without_anything_and_by_watermark_it_is_in_time_order() -> None:
    hub = Hub()
    hub.publish(event("late", 5), event("b", 3), event("a", 3), event("first", 1))
    page = hub.replay(limit=2)
    assert (ids(page), page.has_more) == (["first", "a"], True)
    rest = hub.replay(watermark=page.watermark, limit=10)
    assert (ids(rest), rest.has_more) == (["b", "late"], False)


def test_r6_a_place_in_time_has_a_sequence_only_when_nothing_before_it_is_left() -> None:
    hub = Hub()
    hub.publish(event("a", 2), event("b", 3), event("c", 1))
    first = hub.replay(limit=1)
    assert ids(first) == ["c"]
    assert first.watermark is not None
    assert first.watermark.sequence is None, "reading on by this sequence would skip a and b"
    last = hub.replay(watermark=first.watermark)
    assert last.watermark is not None
    assert (ids(last), last.watermark.sequence) == (["a", "b"], 3)


def test_a_consumer_without_a_checkpoint_gets_everything_page_by_page() -> None:
    hub = Hub()
    hub.publish(*(event(f"e{n}", (7 * n) % 11) for n in range(11)))
    seen: list[str] = []
    for _ in range(20):
        page = hub.replay(consumer="ui", limit=2)
        seen += ids(page)
        if page.watermark is None or not page.has_more:
            break
        hub.realtime.move(SESSION, "ui", page.watermark)
    assert sorted(seen) == sorted(f"e{n}" for n in range(11))


def test_r6_an_event_that_arrives_late_is_told_to_a_watermark_reader() -> None:
    hub = Hub()
    hub.publish(event("a", 1), event("b", 9))
    at = hub.replay().watermark
    hub.publish(event("old", 5), event("new", 10))
    page = hub.replay(watermark=at)
    assert ids(page) == ["new"]
    assert page.late == {"count": 1, "afterSequence": 2}
    assert ids(hub.replay(after_sequence=page.late["afterSequence"])) == ["old", "new"]


def test_r6_precedence_is_sequence_then_checkpoint_then_watermark() -> None:
    hub = Hub()
    hub.publish(*(event(f"e{n}", n) for n in range(6)))
    hub.realtime.move(SESSION, "ui", Watermark("", instant(event("x", 3)["ts"]), "e3", 4))
    hub.realtime.move(SESSION, "old", Watermark("", instant(event("x", 1)["ts"]), "e1"))
    early = Watermark("", 0, "")
    assert ids(hub.replay(after_sequence=2, consumer="ui", watermark=early))[0] == "e2"
    assert ids(hub.replay(consumer="ui", watermark=early))[0] == "e4"
    assert ids(hub.replay(consumer="old"))[0] == "e2"
    assert ids(hub.replay(consumer="nobody"))[0] == "e0"


def test_r6_pruned_history_is_named() -> None:
    hub = Hub()
    hub.publish(*(event(f"e{n}", n) for n in range(6)))
    Prune(hub.log, hub.state, ())(SESSION, 6, lambda e: e.position <= 2)
    for page in (hub.replay(after_sequence=0), hub.replay()):
        assert (ids(page), page.pruned_through) == (["e2", "e3", "e4", "e5"], 2)
    assert hub.replay(after_sequence=2).pruned_through is None


def test_r8_a_final_beats_every_partial_on_read_and_in_the_projection() -> None:
    hub = Hub()
    hub.publish(partial("p1", "u1", 1), partial("f1", "u1", 2, "final"), partial("p2", "u1", 30))
    for how in ({}, {"rebuild": True}, {}):
        told = hub.transcript(**how)
        (line,) = told.utterances
        assert (line["text"], line["final"], told.sequence) == ("f1", True, 3)
    assert hub.projections.load(SESSION).through == 3
    hub.publish(partial("f2", "u1", 31, "final"), event("noise", 40))
    told = hub.transcript()
    assert ([line["text"] for line in told.utterances], told.sequence) == (["f2"], 5)
    assert (told.complete, told.has_more, told.pruned_through) == (True, False, None)


def test_r6_time_order_has_no_largest_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of any length: one page is in memory, and the log is read in stretches."""
    monkeypatch.setattr(read_session, "MAX_READ_BYTES", 2_000)
    monkeypatch.setattr(order_in_time, "BATCH", 7)
    hub, rng = Hub(), random.Random(6)
    events = [event(f"e{n}", rng.randrange(60)) for n in range(300)]
    for first in range(0, 300, 10):
        hub.publish(*events[first : first + 10])
    wanted = [one["eventId"] for one in sorted(events, key=lambda one: (one["ts"], one["eventId"]))]
    page = hub.replay(limit=37)
    seen = ids(page)
    while page.has_more:
        page = hub.replay(watermark=page.watermark, limit=37)
        seen += ids(page)
    assert seen == wanted


def test_r6_a_page_in_time_order_is_cut_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_in_time, "PAGE_BYTES", 1_000)
    hub = Hub()
    for n in range(12):
        hub.publish(event(f"e{n:02}", 11 - n, payload={"callId": "x" * (2_000 if n == 5 else 200)}))
    page, seen = hub.replay(), list[str]()
    for _ in range(12):
        assert page.events
        seen += ids(page)
        if not page.has_more:
            break
        page = hub.replay(watermark=page.watermark)
    assert seen == [f"e{n:02}" for n in reversed(range(12))]


def test_r6_history_that_a_dying_pruner_took_is_named_too() -> None:
    """Pages are emptied before the floor is raised."""
    hub = Hub()
    hub.publish(*(event(f"e{n}", n) for n in range(3)))
    hub.publish(*(event(f"e{n}", n) for n in range(3, 6)))
    Prune(hub.log, hub.state, ())(SESSION, 3)
    hub.state.floors.clear()
    for page in (hub.replay(after_sequence=0), hub.replay(after_sequence=1), hub.replay()):
        assert (ids(page), page.pruned_through) == (["e3", "e4", "e5"], 3)
    assert hub.replay(after_sequence=3).pruned_through is None


def test_r4_counters_are_right_whoever_counts() -> None:
    hub = Hub()
    hub.publish(*(event(f"e{n}", session=f"s{n % 3}") for n in range(10)))
    hub.publish(event("e1", session="s1"))
    hub.realtime.add("t", {"invalid": 2, "deduped": 1})
    metrics = RealtimeMetrics(hub.log, hub.realtime, hub.realtime, in_turn)
    assert metrics(ME) == {"emitted": 10, "invalid": 2, "deduped": 1}
    assert metrics(replace(ME, tenant="nobody")) == {"emitted": 0, "invalid": 0, "deduped": 0}


class Unreachable(MemoryRealtime):
    def add(self, tenant: str, counts: Mapping[str, int]) -> None:
        raise Unavailable("The counters are out of reach.")


@pytest.mark.parametrize(("counters", "counted"), [(MemoryRealtime, True), (Unreachable, False)])
def test_r4_a_request_is_counted_and_counters_out_of_reach_cost_no_event(
    counters: type[MemoryRealtime], counted: bool
) -> None:
    hub = Hub()
    kept = counters(hub.state)
    invalid = Invalid([{"pointer": "/type", "message": "is required"}])
    valid = Valid(event("a"), 0)
    taken = TakeEvents(Publish(hub.commit(), in_turn), kept)(ME, [valid, invalid, valid])
    assert [taken.emitted, taken.invalid, taken.deduped, taken.counted] == [1, 1, 1, counted]
    assert taken.results[1] is invalid
    assert ids(hub.replay(after_sequence=0)) == ["a"]
    assert kept.read("t") == ({"invalid": 1, "deduped": 1} if counted else {})


utterances = st.sampled_from(["u1", "u2", "u3"])
spoken = st.lists(
    st.tuples(utterances, st.integers(0, 59), st.sampled_from(["partial", "final"])), min_size=1, max_size=12
)


@given(spoken, st.randoms(use_true_random=False), st.lists(st.integers(1, 5), min_size=1))
@settings(max_examples=60)
def test_any_order_of_publishes_duplicates_and_retries_gives_the_same_transcript(
    said: list[tuple[str, int, str]], rng: random.Random, sizes: list[int]
) -> None:
    events = [partial(f"e{n}", utterance, second, kind) for n, (utterance, second, kind) in enumerate(said)]
    told = materialise({**one, "sequence": 0} for one in events)
    sent = events + rng.choices(events, k=len(events))
    rng.shuffle(sent)
    hub = Hub()
    size = itertools.cycle(sizes)
    while sent:
        count = next(size)
        hub.publish(*sent[:count])
        sent = sent[count:]
        if rng.random() < 0.3:
            hub.transcript()
    answer = hub.transcript()
    lines = answer.utterances
    assert answer.sequence == len(events)
    assert [one["sequence"] for one in hub.replay(after_sequence=0, limit=500).events] == list(
        range(1, len(events) + 1)
    )
    for line in (*told, *lines):
        line.pop("sequence")
    assert lines == told
