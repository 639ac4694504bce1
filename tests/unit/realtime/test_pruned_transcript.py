"""R8: what retention takes is in the stored transcript first, whatever its length, and the answer says what went."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.lake.application.retain_events import PruneRanges
from millrace.ledger.application.prune import Prune, Pruned
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.ranges import Ranges
from millrace.ledger.ports import Projection
from millrace.realtime.application.transcripts import Transcripts
from tests.unit.realtime.test_publish_and_replay import ME, SESSION, Hub, event, partial

CONSUMERS = ("archive", "fan_out")


def prune(hub: Hub, through: int) -> Pruned:
    """As retention does it."""
    for consumer in CONSUMERS:
        hub.state.move_cursor(SESSION, consumer, hub.state.marks(SESSION).cursors.get(consumer, 0), through)
    return PruneRanges(hub.log, hub.state, lambda: True, hub.folder().keep)(SESSION.name, Ranges(((1, through),)))


def spoken(hub: Hub, count: int, first: int = 0) -> None:
    for n in range(first, first + count):
        hub.publish(partial(f"f{n}", f"u{n:05}", n % 60, "final"))


@pytest.mark.parametrize("was_read", [True, False])
@pytest.mark.parametrize("rebuild", [False, True])
def test_r8_ten_lines_are_ten_lines_after_pruning(*, was_read: bool, rebuild: bool) -> None:
    hub = Hub()
    spoken(hub, 10)
    before = hub.transcript() if was_read else None
    assert prune(hub, 8) == Pruned(8, complete=True)
    told = hub.transcript(rebuild=rebuild)
    assert [line["text"] for line in told.utterances] == [f"f{n}" for n in range(10)]
    assert (told.pruned_through, told.complete, told.sequence) == (8, True, 10)
    if before is not None:
        assert before.pruned_through is None
        assert told.utterances == before.utterances


@pytest.mark.parametrize("rebuild", [False, True])
def test_r8_a_late_partial_does_not_replace_a_pruned_final_and_a_later_final_does(*, rebuild: bool) -> None:
    hub = Hub()
    hub.publish(partial("f1", "u1", 1, "final"), partial("p2", "u2", 30))
    prune(hub, 2)
    hub.publish(partial("p1", "u1", 59), partial("p0", "u2", 29))
    assert [line["text"] for line in hub.transcript(rebuild=rebuild).utterances] == ["f1", "p2"]
    hub.publish(partial("f2", "u1", 2, "final"), partial("p3", "u2", 31))
    assert [line["text"] for line in hub.transcript(rebuild=rebuild).utterances] == ["f2", "p3"]


def test_r8_pruning_again_and_again_changes_nothing() -> None:
    hub = Hub()
    spoken(hub, 6)
    wanted = hub.transcript().utterances
    for through in (2, 2, 5, 5, 6, 6):
        prune(hub, through)
        stored = hub.projections.load(SESSION)
        assert stored.through >= through
        assert hub.transcript().utterances == wanted
    assert (hub.transcript().pruned_through, hub.replay(after_sequence=0).events) == (6, [])


def test_r8_nothing_goes_while_the_transcript_cannot_be_kept() -> None:
    hub = Hub()
    spoken(hub, 5)
    for consumer in CONSUMERS:
        hub.state.move_cursor(SESSION, consumer, 0, 5)

    def only_three(_: Ledger, __: int) -> int:
        return 3

    pruned = PruneRanges(hub.log, hub.state, lambda: True, only_three)(SESSION.name, Ranges(((1, 5),)))
    assert pruned == Pruned(3, complete=False)
    assert [one["sequence"] for one in hub.replay(after_sequence=0).events] == [4, 5]


@pytest.mark.parametrize("rebuild", [False, True])
def test_r8_what_an_older_hub_pruned_without_keeping_it_is_told(*, rebuild: bool) -> None:
    hub = Hub()
    spoken(hub, 10)
    Prune(hub.log, hub.state, ())(SESSION, 8)
    for _ in range(2):
        told = hub.transcript(rebuild=rebuild)
        assert [line["text"] for line in told.utterances] == ["f8", "f9"]
        assert (told.complete, told.pruned_through) == (False, 8)
    spoken(hub, 30, first=10)
    told = hub.transcript(rebuild=rebuild)
    assert (told.complete, len(told.utterances)) == (False, 32), "it is remembered when the transcript is stored"
    assert hub.projections.load(SESSION).lost_through == 8


def test_r8_a_rebuild_repairs_what_is_in_the_log_and_keeps_what_is_not() -> None:
    hub = Hub()
    spoken(hub, 4)
    prune(hub, 2)
    stored = hub.projections.load(SESSION)
    wrong = {key: value for key, value in stored.state.items() if key != "u00003"}
    assert hub.projections.store(SESSION, Projection(stored.through, wrong), stored)
    assert len(hub.transcript().utterances) == 3
    assert len(hub.transcript(rebuild=True).utterances) == 4
    assert len(hub.transcript().utterances) == 4


def test_r8_a_long_transcript_is_answered_in_parts() -> None:
    hub = Hub()
    said = [("u9", 5), ("u1", 5), ("u5", 10**30), ("u2", 0)]
    for utterance, start in said:
        payload = {"utteranceId": utterance, "speaker": "user", "text": "x" * 80, "startMs": start, "endMs": start}
        hub.publish(event(utterance, type="transcript.final", payload=payload))
    parts, after = list[list[dict[str, Any]]](), None
    while True:
        part = Transcripts(hub.folder(), max_bytes=500)(ME, "s1", after)
        parts.append(part.utterances)
        if not part.has_more:
            break
        after = (part.utterances[-1]["startMs"], part.utterances[-1]["utteranceId"])
    assert len(parts) > 1
    assert [line["utteranceId"] for part in parts for line in part] == ["u2", "u1", "u9", "u5"]
    one_each = Transcripts(hub.folder(), max_bytes=1)(ME, "s1")
    assert (len(one_each.utterances), one_each.has_more) == (1, True)
