"""What realtime sessions cost in DynamoDB: a publish, a replay page by page, a transcript."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from millrace.ledger.adapters.dynamodb.projections import DynamoProjections
from millrace.ledger.domain.instants import instant
from millrace.ledger.domain.names import Ledger, realtime_ledger
from millrace.realtime.adapters.dynamodb import DynamoRealtime
from millrace.realtime.adapters.time_index import DynamoTimes
from millrace.realtime.application.fold_transcripts import STORE_AFTER, FoldTranscripts
from millrace.realtime.application.index_times import IndexTimes
from millrace.realtime.application.order_in_time import OrderInTime
from millrace.realtime.application.publish import Publish
from millrace.realtime.application.read_session import ReadSession
from millrace.realtime.application.replay import Replay, ReplayPage, ReplayRequest
from millrace.realtime.ports import Watermark
from tests.bench.events import IDENTITY
from tests.bench.rig import Clock, Rig, Writer
from tests.bench.session_events import checked, mixed, spoken
from tests.bench.sync import WatchedHeads
from tests.bench.tally import Counts

TABLES = ("claims", "log", "state")
READ_TABLES = (*TABLES, "index")
SESSIONS = 25
PAGE = 500
_SEEDS = count(900_000)


@dataclass(frozen=True, slots=True)
class Publishing:
    counts: Counts
    events: int

    @property
    def calls(self) -> int:
        return self.counts.calls_to(*TABLES)

    @property
    def units(self) -> int:
        return self.counts.write_units(*TABLES)

    def row(self, case: str) -> dict[str, Any]:
        return {
            "case": case,
            "events": self.events,
            "calls": self.calls,
            "write units": self.units,
            "write units per event": round(self.units / self.events, 2),
            "read units": self.counts.read_units(*TABLES),
            "round trips": self.counts.rounds,
        }


def publishing(rig: Rig, events: int, sessions: int = 1, *, new: bool = False) -> Publishing:
    """By a process that has published into these sessions a moment ago, or into sessions that do not exist yet."""
    writer, names = rig.writer(), [_session(rig) for _ in range(sessions)]
    if not new:
        _publish(writer, mixed(sessions, next(_SEEDS), names))
    batch = mixed(events, next(_SEEDS), names)
    with rig.tally.measured() as counts:
        _publish(writer, batch)
    return Publishing(counts, events)


def publish_rows(rig: Rig) -> list[dict[str, Any]]:
    cases = [(events, 1, False) for events in (1, 25, 100)]
    cases += [(events, SESSIONS, False) for events in (25, 100)]
    cases += [(1, 1, True), (25, 1, True), (25, SESSIONS, True)]
    return [
        publishing(rig, events, sessions, new=new).row(
            f"{'one' if sessions == 1 else sessions}{' new' * new} session{'s' * (sessions > 1)}"
        )
        for events, sessions, new in cases
    ]


@dataclass(frozen=True, slots=True)
class Replayed:
    """Some pages of a replay, one after the other."""

    counts: Counts
    pages: int
    events: int
    rounds_after_head: int
    """Of the worst page."""

    def row(self, stored: str, how: str) -> dict[str, Any]:
        return {
            "stored": stored,
            "read": how,
            "pages": self.pages,
            "events": self.events,
            "calls per page": round(self.counts.calls_to(*READ_TABLES) / self.pages, 2),
            "read units per page": round(self.counts.read_units(*READ_TABLES) / self.pages, 1),
            "round trips per page": round(self.counts.rounds / self.pages, 2),
            "after the head, worst page": self.rounds_after_head,
        }


@dataclass(frozen=True, slots=True)
class Reader:
    """A process that knows nothing at first."""

    rig: Rig
    session: Ledger
    heads: WatchedHeads
    replay: Replay

    def by_sequence(self) -> Replayed:
        """The whole session in pages of 500, each asked for after the last event of the one before."""
        pages, events, worst, after, more = 0, 0, 0, 0, True
        with self.rig.tally.measured() as counts:
            while more:
                page = self._page(ReplayRequest(after_sequence=after, limit=PAGE))
                worst = max(worst, self.rig.tally.rounds.spent - self.heads.known_at)
                pages, events, more = pages + 1, events + len(page.events), page.has_more
                after = page.events[-1]["sequence"]
        return Replayed(counts, pages, events, worst)

    def in_time_order(self) -> Replayed:
        """One page after a watermark in the middle; the head is known."""
        middle = self._page(ReplayRequest(after_sequence=PAGE, limit=1)).events[0]
        watermark = Watermark(middle["ts"], instant(middle["ts"]), middle["eventId"])
        with self.rig.tally.measured() as counts:
            page = self._page(ReplayRequest(watermark=watermark, limit=PAGE))
        return Replayed(counts, 1, len(page.events), self.rig.tally.rounds.spent - self.heads.known_at)

    def _page(self, asked: ReplayRequest) -> ReplayPage:
        return self.replay.page(self.session, asked)


def reader(rig: Rig, session: Ledger) -> Reader:
    heads = WatchedHeads(Clock(), tally=rig.tally)
    read = ReadSession(rig.log, rig.state, heads, rig.together)
    order = OrderInTime(read, _times(rig))
    return Reader(rig, session, heads, Replay(read, order, _realtime(rig)))


def stored(rig: Rig, events: Sequence[dict[str, Any]], per_publish: int) -> Ledger:
    """One session's events, published so many at a time, with a cursor where the head is and its time index."""
    writer, session = rig.writer(), realtime_ledger(IDENTITY.tenant, events[0]["sessionId"])
    for start in range(0, len(events), per_publish):
        _publish(writer, events[start : start + per_publish])
    assert rig.index_partitions(session)
    assert IndexTimes(rig.log, rig.state, _times(rig), lambda: True)(session)
    return session


def replay_rows(rig: Rig) -> list[tuple[Replayed, dict[str, Any]]]:
    rows = []
    for count_, per_publish in ((10_000, 100), (50_000, 100), (2_000, 1)):
        session = stored(rig, mixed(count_, next(_SEEDS), [_session(rig)]), per_publish)
        name = f"{count_:,} events, published {'one by one' if per_publish == 1 else f'{per_publish} at a time'}"
        for how, read in (
            ("by sequence, whole session", reader(rig, session).by_sequence()),
            ("in time order, one page", reader(rig, session).in_time_order()),
        ):
            rows.append((read, read.row(name, how)))
    return rows


def transcripts(rig: Rig, utterances: int) -> dict[str, Counts]:
    """Each read by a process that knows nothing."""
    id_ = _session(rig)
    told = spoken(utterances, next(_SEEDS), id_)
    session = stored(rig, told, 100)
    enough = max(STORE_AFTER, len(told) // 10)

    def later(events: int) -> None:
        stored(rig, mixed(events, next(_SEEDS), [id_]), 100)

    def read() -> Counts:
        with rig.tally.measured() as counts:
            folded = FoldTranscripts(reader(rig, session).replay.read, _projections(rig))(session)
        assert len(wanted & folded.transcript.keys()) == utterances
        return counts

    wanted = {event["payload"]["utteranceId"] for event in told}
    counted = {"first read": read(), "again: from the projection": read()}
    later(enough - 1)
    counted[f"after {enough - 1} more events"] = read()
    later(1)
    counted[f"after {enough} more events, stored anew"] = read()
    return counted


def transcript_rows(rig: Rig, utterances: int) -> list[dict[str, Any]]:
    return [
        {
            "read": name,
            "calls": counts.calls_to(*TABLES),
            "read units": counts.read_units(*TABLES),
            "write units": counts.write_units(*TABLES),
            "round trips": counts.rounds,
        }
        for name, counts in transcripts(rig, utterances).items()
    ]


def _publish(writer: Writer, events: Sequence[dict[str, Any]]) -> None:
    results = Publish(writer.commit, writer.commit.together)(IDENTITY, checked(events))
    assert all(result.event is not None and not result.deduped for result in results)


def _projections(rig: Rig) -> DynamoProjections:
    return DynamoProjections(rig.tables.client, rig.tables.state, "transcript", lambda: os.urandom(12).hex())


def _times(rig: Rig) -> DynamoTimes:
    return DynamoTimes(rig.tables.client, rig.tables.index, rig.together)


def _realtime(rig: Rig) -> DynamoRealtime:
    return DynamoRealtime(rig.tables.client, rig.tables.state, rig.together)


def _session(rig: Rig) -> str:
    return f"bench-{next(rig.names):04d}"
