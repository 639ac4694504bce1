"""What an event costs on each path, in and out, from the counts of the benchmarks."""

from __future__ import annotations

from infra.costs.counted import average, hub, measured
from infra.costs.held import ARCHIVE_OBJECT, FAN_OUT_RINGS, MINUTES_A_MONTH, QUEUE_CALL, TARGET
from infra.costs.lines import Bill, Call, one, units
from infra.costs.prices import (
    CONNECTION_MINUTE,
    HTTP_REQUEST,
    OBJECT_PUT,
    QUEUE_REQUEST,
    REST_REQUEST,
    SOCKET_MESSAGE,
    Price,
)

JOURNAL_BATCH = 1_000
PAGE = 1_000
"""Events of a sync page."""
OF_A_RING = 3
"""A message is sent, received and deleted."""


def _door(
    what: str,
    function: str,
    *,
    events: int,
    writes: float,
    reads: float,
    round_trips: float,
    cpu_us: float,
    api: Price = HTTP_REQUEST,
) -> Bill:
    call = Call(hub().memory(function), round_trips, events, cpu_us, counts=True, logged=api == HTTP_REQUEST)
    name = "HTTP request" if api == HTTP_REQUEST else "REST request"
    return Bill(what, [one(api, name, events), *call.lines(), *units(writes, reads)])


def _submit(events: int, function: str = "submit", what: str = "HTTP submit") -> Bill:
    row = measured("costs", "commit", scenario="fresh, warm writer", payload="realistic", events=events)
    return _door(
        f"{what}, {_batch(events)}",
        function,
        events=events,
        writes=row["write units per event"],
        reads=row["read units per event"],
        round_trips=row["round trips per commit"],
        cpu_us=measured("cpu", "submit", payload="realistic", batch=events)["submit and pack"],
    )


def _batch(events: int) -> str:
    return "alone" if events == 1 else f"{events} a request"


def _socket() -> Bill:
    row = measured("live", "messages", what="submit_events, one event, warm")
    cpu = measured("cpu", "submit", payload="realistic", batch=1)["submit and pack"]
    call = Call(hub().memory("socket"), row["round trips"], 1, cpu, QUEUE_CALL.value, counts=True)
    return Bill(
        "WebSocket submit, alone",
        [one(SOCKET_MESSAGE, "messages", units=2), *call.lines(), *units(row["write units"], row["read units"])],
    )


def _publish(events: int) -> Bill:
    row = measured("realtime", "publish", case="one session", events=events)
    return _door(
        f"realtime publish, {_batch(events)}",
        "publish",
        events=events,
        writes=row["write units per event"],
        reads=row["read units"] / events,
        round_trips=row["round trips"],
        cpu_us=average("realtime", "cpu", "publish" if events == 1 else "publish, 25 at once"),
    )


def _emit(events: int) -> Bill:
    row = measured("streams", "emit", emitted="events", payload="realistic", events=events)
    return _door(
        f"streams emit, {_batch(events)}",
        "emit",
        events=events,
        writes=row["write units per event"],
        reads=row["read units"] / events,
        round_trips=row["round trips"],
        cpu_us=measured("streams", "emit_cpu", batch=events)["emit"],
    )


def _ingest() -> Bill:
    """Pages of 100 and their claims, as a submit of 100 makes them; ten after the other."""
    row = measured("costs", "commit", scenario="fresh, warm writer", payload="realistic", events=100)
    return _door(
        f"delivery in (batch door), {JOURNAL_BATCH} a request",
        "ingest",
        events=JOURNAL_BATCH,
        writes=row["write units per event"],
        reads=row["read units per event"],
        round_trips=row["round trips per commit"] * JOURNAL_BATCH / 100,
        cpu_us=measured("cpu", "submit", payload="realistic", batch=100)["submit and pack"],
        api=REST_REQUEST,
    )


def ways_in() -> list[Bill]:
    return [
        *(_submit(events) for events in (1, 25, 100)),
        _socket(),
        *(_publish(events) for events in (1, 25)),
        *(_emit(events) for events in (1, 25, 100)),
        *(_submit(events, "catalog", "catalog (units of a submit)") for events in (1, 25, 100)),
        _ingest(),
    ]


def _unpack_us(per_page: int) -> float:
    return float(measured("streams", "poll_cpu", **{"events a page": per_page})["poll and unpack"])


def fan_out(events: int) -> Bill:
    """A run over one page, for one partition, without its posts."""
    row = measured("live", "fan_out", spread="one partition", subscribers=1, events=events)
    call = Call(hub().memory("fan_out"), row["round trips"] + 1, events, _unpack_us(events), QUEUE_CALL.value)
    reads = row["read units"] + FAN_OUT_RINGS.reads
    return Bill(
        f"fan-out, its run, {'one event a page' if events == 1 else f'{events} events a page'}",
        [*call.lines(), *units(row["write units"] / events, reads / events)],
    )


def post() -> Bill:
    """The benchmark's posts kept one core of a small machine busy."""
    row = measured("live", "crowd", connections=500)
    memory = hub().memory("fan_out")
    ms = 1_000 / row["events × connections per second"]
    work = list(Call(memory, 0, cpu_us=1_000 * ms).lines())[1]
    base = list(Call(memory, 0).lines())[1]
    spent = work.units - base.units
    line = one(SOCKET_MESSAGE, "message")
    return Bill(
        "fan-out, each connection that hears it",
        [line, type(line)(spent, work.price, f"{memory / 1_024:.4g} GB × {1_000 * spent * 1_024 / memory:.1f} ms")],
    )


def index(pages: int, events: int) -> Bill:
    row = measured("costs", "index", pages=pages, events=events)
    call = Call(hub().memory("index"), row["calls"], events, _unpack_us(1))
    rings = one(QUEUE_REQUEST, "queue requests", events, OF_A_RING)
    name = "each event rings" if events == 1 else f"{events:,} events at once"
    return Bill(
        f"index, {name}", [rings, *call.lines(), *units(row["write units per event"], row["read units per event"])]
    )


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


def ways_out() -> list[Bill]:
    return [
        fan_out(1),
        fan_out(25),
        post(),
        index(1, 1),
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
    submitted = _door(
        "HTTP submit",
        "submit",
        events=1,
        writes=row["write units"],
        reads=row["read units"],
        round_trips=alone["round trips per commit"],
        cpu_us=measured("cpu", "submit", payload="realistic", batch=1)["submit and pack"],
    )
    return submitted.and_also("one lonely event a second", fan_out(1), index(1, 1), archive(archive_window()))


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
