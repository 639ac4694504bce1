"""A line of the bill: so many units of something at its price, and how they were counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from infra.costs.held import ACCESS_LINE, FULL_CORE, HANDLER, LOG_BYTES, PLATFORM_LINES, ROUND_TRIP
from infra.costs.prices import GB_SECOND, INVOCATION, LOG_GB, READ_UNIT, WRITE_UNIT, Price


@dataclass(frozen=True, slots=True)
class BillLine:
    units: float
    price: Price
    how: str

    @property
    def dollars(self) -> float:
        return self.price.of(self.units)


@dataclass(frozen=True, slots=True)
class Bill:
    what: str
    lines: Sequence[BillLine]

    @property
    def dollars(self) -> float:
        return sum(line.dollars for line in self.lines)

    @property
    def how(self) -> str:
        return " + ".join(line.how for line in self.lines if line.units)

    def times(self, count: float, what: str) -> Bill:
        """The same so often."""
        inside = [line for line in self.lines if line.units]
        hows = [line.how for line in inside]
        hows[0], hows[-1] = f"{count:,.0f} × ({hows[0]}", f"{hows[-1]})"
        return Bill(
            what, [BillLine(count * line.units, line.price, how) for line, how in zip(inside, hows, strict=True)]
        )

    def and_also(self, what: str, *others: Bill) -> Bill:
        return Bill(what, [line for bill in (self, *others) for line in bill.lines])


@dataclass(frozen=True, slots=True)
class Call:
    """An invocation of a function, shared by the events that it handles."""

    memory: int
    round_trips: float
    events: float = 1
    cpu_us: float = 0
    """Of each event, on a whole core."""
    waits_ms: float = 0
    """For others than DynamoDB."""
    counts: bool = False
    """Whether it writes a line with metrics."""
    logged: bool = False
    """Whether an API logs the request too."""
    quiet: bool = False
    """Whether it writes no line of its own when all goes well."""

    @property
    def ms(self) -> float:
        share = min(1.0, self.memory / FULL_CORE.value)
        busy = (HANDLER.value + self.cpu_us * self.events / 1_000) / share
        return busy + self.round_trips * ROUND_TRIP.value + self.waits_ms

    def lines(self) -> Iterable[BillLine]:
        per_event = "" if self.events == 1 else f" / {self.events:,.6g}"
        gb = self.memory / 1_024
        yield BillLine(1 / self.events, INVOCATION, f"1 invocation{per_event}")
        yield BillLine(gb * self.ms / 1_000 / self.events, GB_SECOND, f"{gb:.4g} GB × {self.ms:.1f} ms{per_event}")
        size = PLATFORM_LINES.value + (0 if self.quiet else LOG_BYTES["function"])
        size += LOG_BYTES["metrics"] if self.counts else 0
        size += ACCESS_LINE.value if self.logged else 0
        yield BillLine(size / 1e9 / self.events, LOG_GB, f"{size:.0f} bytes of logs{per_event}")


def one(price: Price, name: str, events: float = 1, units: float = 1) -> BillLine:
    shared = "" if events == 1 else f" / {events:,.6g}"
    return BillLine(units / events, price, f"{units:,.6g} {name}{shared}")


def units(writes: float, reads: float) -> Iterable[BillLine]:
    """Per event."""
    yield BillLine(writes, WRITE_UNIT, f"{writes:.4g} write {_plural('unit', writes)}")
    yield BillLine(reads, READ_UNIT, f"{reads:.4g} read {_plural('unit', reads)}")


def _plural(word: str, count: float) -> str:
    return word if count == 1 else f"{word}s"
