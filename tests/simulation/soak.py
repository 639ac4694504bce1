"""Run the simulator over many seeds on all cores: `make soak SEEDS=100000`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from rich.progress import track

from millrace.ledger.domain.errors import Rejected
from tests.simulation.announce import AnnounceWorld
from tests.simulation.history import Held
from tests.simulation.world import World, shrink

SCENARIOS: dict[str, type[World | AnnounceWorld]] = {"ledger": World, "announce": AnnounceWorld}
CHUNK = 40


def run_seeds(scenario: str, seeds: Iterable[int]) -> Held:
    """A broken promise names its seed and how to replay it."""
    shrink()
    total = Held()
    for seed in seeds:
        try:
            total += SCENARIOS[scenario](seed).run()
        except (AssertionError, Rejected) as error:
            replay = f"replay it: make soak SEEDS=1 ARGS='--first {seed} --scenario {scenario}'"
            raise AssertionError(f"seed {seed}: {error} ({replay})") from error
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20_000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes to use")
    parser.add_argument("--scenario", choices=list(SCENARIOS), help="one of them; all, if none is named")
    arguments = parser.parse_args()
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
        with ProcessPoolExecutor(arguments.jobs) as pool:
            done = track(pool.map(run, chunks), scenario, len(chunks), disable=not sys.stdout.isatty())
            total = sum(done, Held())
    seconds = time.monotonic() - started
    print(
        f"{scenario}: {arguments.seeds} seeds held, {total.events} events committed, "
        f"history {total.fingerprint:08x}, {seconds:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
