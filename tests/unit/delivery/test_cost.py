"""D9: the cost of selection follows what is selected, not what is stored. Counted in steps of SQLite's machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace.delivery.domain.families import Families, Family
from millrace_client.journal.sqlite.ledger import LEDGER, SqliteLedger
from tests.support.worlds import A, Scripted, World, on_sqlite, results

pytestmark = pytest.mark.slow
RETAINED = (500, 10_000)


def steps(world: World) -> int:
    """Of one selection of up to 100 events."""
    assert isinstance(world.ledger, SqliteLedger)
    connection, counted = world.ledger.database.connection, [0]

    def count() -> int:
        counted[0] += 1
        return 0

    connection.set_progress_handler(count, 1)
    world.ledger.select(A, LEDGER, world.clock(), 100, 1024 * 1024)
    connection.set_progress_handler(None, 0)
    return counted[0]


def delivered(folder: Path, count: int) -> World:
    world = on_sqlite(folder / f"{count}.db")
    world.capture(*[f"old-{number}" for number in range(count)])
    world.drain(Scripted())
    return world


@pytest.mark.parametrize("waiting", ["nothing", "new events", "transient", "rejected", "terminal_failed"])
def test_selecting_costs_the_same_however_much_is_retained(tmp_path: Path, waiting: str) -> None:
    costs = []
    for count in RETAINED:
        world = delivered(tmp_path, count)
        if waiting != "nothing":
            new = [f"new-{number}" for number in range(20)]
            world.capture(*new)
            if waiting != "new events":
                world.drain(Scripted([results(**dict.fromkeys(new, waiting))]))
                world.clock.ahead(10**9)
        costs.append(steps(world))
    assert costs[0] > 0
    assert costs[1] == pytest.approx(costs[0], rel=0.05)


def test_events_a_target_does_not_want_are_passed_over_once(tmp_path: Path) -> None:
    world = on_sqlite(tmp_path / "journal.db")
    world.families = Families({"here.": Family.LOCAL_ONLY})
    world.capture(*[f"h{number}" for number in range(2_000)], kind="here.note")
    world.know(A)
    first = steps(world)
    world.drain(Scripted())
    assert steps(world) < first / 50
