"""What it costs to take an event in, by path and batch, from the counts of the benchmarks."""

from __future__ import annotations

from infra.costs.counted import average, hub, measured
from infra.costs.held import QUEUE_CALL
from infra.costs.lines import Bill, Call, one, units
from infra.costs.prices import HTTP_REQUEST, REST_REQUEST, SOCKET_MESSAGE, Price

JOURNAL_BATCH = 1_000


def door(
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
    return door(
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
    return door(
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
    return door(
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
    return door(
        f"delivery in (batch door), {JOURNAL_BATCH} a request",
        "ingest",
        events=JOURNAL_BATCH,
        writes=row["write units per event"],
        reads=row["read units per event"],
        round_trips=row["round trips per commit"] * JOURNAL_BATCH / 100,
        cpu_us=measured("cpu", "submit", payload="realistic", batch=100)["submit and pack"],
        api=REST_REQUEST,
    )


def all_ways() -> list[Bill]:
    return [
        *(_submit(events) for events in (1, 25, 100)),
        _socket(),
        *(_publish(events) for events in (1, 25)),
        *(_emit(events) for events in (1, 25, 100)),
        *(_submit(events, "catalog", "catalog (units of a submit)") for events in (1, 25, 100)),
        _ingest(),
    ]
