"""Run the simulator over many seeds on all cores: `make soak SEEDS=100000`."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from millrace.ledger.domain.errors import Rejected
from tests.simulation.history import Held
from tests.simulation.world import World, shrink

if TYPE_CHECKING:
    from tests.simulation.announce import AnnounceWorld
    from tests.simulation.crowd import CrowdWorld

SCENARIOS = ("ledger", "announce", "crowd")
CHUNK = 40
GARBAGE = 50_000
"""So many new objects before the collector looks for cycles: nearly all of them go without it."""


def _world(scenario: str) -> Callable[[int], World | AnnounceWorld | CrowdWorld]:
    """What a run does not need it does not import: many end after a few seeds."""
    if scenario == "ledger":
        return World
    if scenario == "crowd":
        from tests.simulation.crowd import CrowdWorld

        return CrowdWorld
    from tests.simulation.announce import AnnounceWorld

    return AnnounceWorld


def run_seeds(scenario: str, seeds: Iterable[int]) -> Held:
    """A broken promise names its seed and how to replay it."""
    shrink()
    world, total = _world(scenario), Held()
    for seed in seeds:
        try:
            total += world(seed).run()
        except (AssertionError, Rejected) as error:
            replay = f"replay it: make soak SEEDS=1 ARGS='--first {seed} --scenario {scenario}'"
            raise AssertionError(f"seed {seed}: {error} ({replay})") from error
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20_000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes to use")
    parser.add_argument("--scenario", choices=SCENARIOS, help="one of them; all, if none is named")
    arguments = parser.parse_args()
    gc.freeze()
    gc.set_threshold(GARBAGE)
    try:
        for scenario in [arguments.scenario] if arguments.scenario else SCENARIOS:
            _soak(scenario, arguments)
    except AssertionError as error:
        print(f"A promise is broken: {error}", file=sys.stderr)
        return 1
    return 0


def _soak(scenario: str, arguments: argparse.Namespace) -> None:
    started, run = time.monotonic(), partial(run_seeds, scenario)
    last = arguments.first + arguments.seeds
    chunks = [range(start, min(start + CHUNK, last)) for start in range(arguments.first, last, CHUNK)]
    if arguments.jobs == 1 or len(chunks) == 1:
        total = sum(map(run, chunks), Held())
    else:
        total = sum(_side_by_side(run, chunks, arguments.jobs, scenario), Held())
    seconds = time.monotonic() - started
    print(
        f"{scenario}: {arguments.seeds} seeds held, {total.events} events committed, "
        f"history {total.fingerprint:08x}, {seconds:.0f} s"
    )


def _side_by_side(run: Callable[[range], Held], chunks: Sequence[range], jobs: int, title: str) -> Iterator[Held]:
    """In order. After a broken promise nobody goes on."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children

    from rich.progress import track

    with ProcessPoolExecutor(jobs) as pool:
        try:
            yield from track(pool.map(run, chunks), title, len(chunks), disable=not sys.stdout.isatty())
        except AssertionError:
            for process in active_children():
                process.terminate()
            raise


if __name__ == "__main__":
    sys.exit(main())
