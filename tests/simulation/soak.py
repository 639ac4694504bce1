"""Run the simulator over many seeds on all cores: `make soak SEEDS=100000`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from rich.progress import track

from tests.simulation.world import run_seeds

CHUNK = 250


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20_000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes to use")
    arguments = parser.parse_args()
    started = time.monotonic()
    last = arguments.first + arguments.seeds
    chunks = [range(start, min(start + CHUNK, last)) for start in range(arguments.first, last, CHUNK)]
    try:
        if arguments.jobs == 1 or len(chunks) == 1:
            total = sum(run_seeds(chunk) for chunk in chunks)
        else:
            with ProcessPoolExecutor(arguments.jobs) as pool:
                total = sum(track(pool.map(run_seeds, chunks), "seeds", len(chunks), disable=not sys.stdout.isatty()))
    except AssertionError as error:
        print(f"A promise is broken: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.seeds} seeds held, {total} events committed, {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
