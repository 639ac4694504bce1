"""`make bench`: count calls and units, compare encodings and imports, and say which figures hold."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial

from rich.console import Console

from tests.bench import (
    busy,
    busy_http,
    castore,
    cold_start,
    costs,
    cpu,
    crowd,
    crowd_time,
    delivery,
    delivery_hub,
    first_answer,
    flood_time,
    live,
    packing,
    realtime,
    report,
    streams,
    sync,
    wire,
)

SECTIONS: Mapping[str, Callable[[], report.Section]] = {
    "costs": costs.run,
    "busy": busy.run,
    "busy_http": busy_http.run,
    "cpu": cpu.run,
    "packing": packing.run,
    "cold_start": cold_start.run,
    "first_answer": first_answer.run,
    "wire": wire.run,
    "sync": sync.run,
    "live": live.run,
    "crowd_time": crowd_time.run,
    "flood_time": flood_time.run,
    "realtime": realtime.run,
    "streams": streams.run,
    "delivery": delivery.run,
    "delivery_hub": delivery_hub.run,
    "castore": castore.run,
}
ON_REQUEST = ("castore",)
"""Fetches packages from npm."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, help="run one section and keep the stored results of the others")
    parser.add_argument("--connections", type=int, default=crowd.CONNECTIONS, help="of the section live")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    asked = parser.parse_args()
    console = Console(width=170, quiet=asked.json)
    results = report.stored()
    missed = []
    sections: dict[str, Callable[[], report.Section]] = {**SECTIONS, "live": partial(live.run, asked.connections)}
    for name, run in sections.items():
        if asked.only != name and (asked.only or name in ON_REQUEST):
            continue
        console.rule(name)
        section = run()
        report.show(console, section)
        results[name] = section.as_json()
        missed += [figure for figure in section.figures if not figure.holds]
    text = report.as_text(report.document(results, list(SECTIONS)))
    report.RESULTS.write_text(text)
    if asked.json:
        sys.stdout.write(text)
    for figure in missed:
        sys.stderr.write(f"missed: {figure.name}: wanted {figure.wanted}, measured {figure.measured}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
