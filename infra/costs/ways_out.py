"""What it costs to hand an event on, by path; and what a lonely one costs in all."""

from __future__ import annotations

from infra.costs import ways_in
from infra.costs.counted import hub, measured
from infra.costs.held import ARCHIVE_OBJECT, FAN_OUT_RINGS, FULL_CORE, MINUTES_A_MONTH, NOTE, QUEUE_CALL, TARGET
from infra.costs.lines import Bill, BillLine, Call, one, units
from infra.costs.prices import (
    CONNECTION_MINUTE,
    GB_SECOND,
    HTTP_REQUEST,
    OBJECT_PUT,
    QUEUE_REQUEST,
    SOCKET_MESSAGE,
)
from millrace.ledger.domain.recency import WINDOW_MS

PAGE = 1_000
"""Events of a sync page."""
OF_A_RING = 3
"""A message is sent, received and deleted."""


def _unpack_us(per_page: int) -> float:
    return float(measured("streams", "poll_cpu", **{"events a page": per_page})["poll and unpack"])


def fan_out(events: int, rings: float = 1) -> Bill:
    """A run over one page, for one partition, without its posts. It rings for the index in `rings` of its runs."""
    row = measured("live", "fan_out", spread="one partition", subscribers=1, events=events)
    waits_ms = rings * QUEUE_CALL.value
    call = Call(hub().memory("fan_out"), row["round trips"] + 1, events, _unpack_us(events), waits_ms, quiet=True)
    reads = row["read units"] + FAN_OUT_RINGS.reads
    return Bill(
        f"fan-out, its run, {'one event a page' if events == 1 else f'{events} events a page'}",
        [*call.lines(), *units(row["write units"] / events, reads / events)],
    )


def post() -> Bill:
    """As long as in the benchmark, whose posts kept one core busy."""
    rate = measured("live", "crowd", connections=500)["events × connections per second"]
    gb, share = hub().memory("fan_out") / 1_024, min(1.0, hub().memory("fan_out") / FULL_CORE.value)
    ms = 1_000 / rate / share
    work = BillLine(gb * ms / 1_000, GB_SECOND, f"{gb:.4g} GB × {ms:.1f} ms")
    return Bill("fan-out, each connection that hears it", [one(SOCKET_MESSAGE, "message"), work])


def index(pages: int, events: int) -> Bill:
    row = measured("costs", "index", pages=pages, events=events)
    call = Call(hub().memory("index"), row["calls"], events, _unpack_us(1))
    rings = one(QUEUE_REQUEST, "queue requests", events, OF_A_RING)
    name = "one event alone" if events == 1 else f"{events:,} events at once"
    return Bill(
        f"index, {name}", [rings, *call.lines(), *units(row["write units per event"], row["read units per event"])]
    )


def noted(events: int) -> Bill:
    """By the fan-out, as a rule."""
    spent = units(NOTE.writes / events, NOTE.reads / events)
    return Bill(f"a note that the ledger has grown, once in {WINDOW_MS // 60_000} minutes", list(spent))


def archive_window() -> int:
    """For so many seconds the archive gathers, and then writes an object."""
    return int(hub().functions["archive"]["Events"]["Log"]["Properties"]["MaximumBatchingWindowInSeconds"])


def archive(events: int) -> Bill:
    """One object of one ledger; the log is read as sync reads it."""
    stored = "2,000 events, one a page" if events < PAGE else "10,000 events, 100 a page"
    pages = measured("sync", "cycles", stored=stored, asked="the whole project")["read units per event"]
    made = ARCHIVE_OBJECT
    call = Call(hub().memory("archive"), made.reads + made.writes, events, _unpack_us(1), QUEUE_CALL.value, counts=True)
    put = one(OBJECT_PUT, "object put", events, made.puts)
    spent = units(made.writes / events, (made.reads - 1) / events + pages)
    return Bill(f"archive, {events:,} events an object", [put, *call.lines(), *spent])


def deliver(case: str, what: str, requests: int) -> Bill:
    row = measured("delivery_hub", "costs", case=case)
    events = row["events"]
    call = Call(
        hub().memory("deliver"), row["calls"], events, _unpack_us(100), waits_ms=requests * TARGET.value, counts=True
    )
    rings = one(QUEUE_REQUEST, "queue requests", events, OF_A_RING)
    return Bill(
        what, [rings, *call.lines(), *units(row["write units per event"], row["read units (delivery)"] / events)]
    )


def sync(stored: str, asked: str, what: str) -> Bill:
    row = measured("sync", "cycles", stored=stored, asked=asked)
    events = row["events"] / row["pages"]
    call = Call(hub().memory("sync"), row["round trips per page"], events, _unpack_us(100), logged=True)
    return Bill(
        what, [one(HTTP_REQUEST, "HTTP request", events), *call.lines(), *units(0, row["read units per event"])]
    )


def all_ways() -> list[Bill]:
    return [
        fan_out(1),
        fan_out(25),
        post(),
        index(1, 1),
        index(index_window(), index_window()),
        index(40, 1_000),
        archive(archive_window()),
        archive(PAGE),
        deliver("webhooks, one event a request", "webhook delivery, one event a request", requests=100),
        deliver("batches of 100", "batch delivery, 100 a request", requests=10),
        deliver("batches of 1000", "batch delivery, 1000 a request", requests=1),
        sync("10,000 events, 100 a page", "the whole project", "sync pages of 1000, whole project, 100 a stored page"),
        sync("2,000 events, one a page", "the whole project", "sync pages of 1000, whole project, one a stored page"),
        sync("10,000 events, 100 a page", "one partition of ten, indexed", "sync pages of 1000, one partition of ten"),
    ]


def lonely() -> Bill:
    """One event a second into one ledger, each in a request of its own."""
    row = measured("busy", "busy", **{"events/s": 1, "batch": 1})
    alone = measured("costs", "commit", scenario="fresh, warm writer", payload="realistic", events=1)
    submitted = ways_in.door(
        "HTTP submit",
        "submit",
        events=1,
        writes=row["write units"],
        reads=row["read units"],
        round_trips=alone["round trips per commit"],
        cpu_us=measured("cpu", "submit", payload="realistic", batch=1)["submit and pack"],
    )
    return submitted.and_also("one lonely event a second", *after_lonely())


def index_window() -> int:
    """For so many seconds rings for the index are gathered."""
    return int(hub().template["Parameters"]["IndexDelay"]["Default"])


def after_lonely() -> list[Bill]:
    """What follows the submit of one event a second, but no more often than it has to."""
    window = index_window()
    return [
        fan_out(1, FAN_OUT_RINGS.sends / window),
        noted(WINDOW_MS // 1_000),
        index(window, window),
        archive(archive_window()),
    ]


def visit() -> Bill:
    """A client that connects, catches up with one partition, and leaves again."""
    said = ("$connect", "connect", "sync of an empty project, one partition", "$disconnect")
    rows = [measured("live", "messages", what=what) for what in said]
    round_trips = sum(row["round trips"] for row in rows)
    calls = len(rows) + 1  # and the look at whether it said `connect` in time
    all_of_them = Call(hub().memory("socket"), round_trips / calls)
    return Bill(
        "a visit: connect, sync, leave",
        [
            one(SOCKET_MESSAGE, "messages", units=4),
            one(QUEUE_REQUEST, "queue requests", units=OF_A_RING),
            *Bill("", list(all_of_them.lines())).times(calls, "").lines,
            *units(sum(row["write units"] for row in rows), sum(row["read units"] for row in rows)),
        ],
    )


def connection() -> Bill:
    return Bill("a connection that stays open for a month", [one(CONNECTION_MINUTE, "minutes", units=MINUTES_A_MONTH)])
