"""`make chaos`: break a whole hub of its own while everybody uses it, then check every promise."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from rich.console import Console

from local.embedded import embedded_stack
from local.emulator import free_port
from millrace_client.local_stack import secret_of
from tests.chaos import report
from tests.chaos.plan import SMALL, Plan
from tests.chaos.run import run
from tests.e2e.conftest import Hub

KEPT = Path("build") / "chaos.json"


@contextmanager
def own_hub() -> Iterator[Hub]:
    with TemporaryDirectory() as folder, embedded_stack(Path(folder), free_port()) as stack:
        secret = secret_of(stack.endpoint_url, stack.region, stack.secret_arn)
        with httpx.Client(base_url=stack.http_url, timeout=60) as http:
            yield Hub(stack, secret, http)


def parsed(argv: list[str] | None = None) -> argparse.Namespace:
    full = Plan()
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--small", action="store_true", help="as small as in the tests; other options change it")
    parser.add_argument("--seconds", type=float, help=f"the storm lasts so long at least ({full.seconds:g})")
    parser.add_argument("--events", type=int, help=f"acknowledged events, at least ({full.events})")
    parser.add_argument("--kills", type=int, help=f"of function processes ({full.kills})")
    parser.add_argument("--pause-seconds", type=float, help=f"of the emulator, in all ({full.pause_seconds:g})")
    parser.add_argument("--probes", type=int, help=f"events whose way is timed ({full.probes})")
    parser.add_argument("--flood-rate", type=float, help=f"requests a second of the flood ({full.flood_rate:g})")
    parser.add_argument("--hanging-targets", type=int, help=f"of the tenant that floods ({full.hanging_targets})")
    parser.add_argument("--ratio", type=float, help=f"how much slower a neighbour may be in a flood ({full.ratio:g})")
    parser.add_argument("--seed", type=int, help=f"of everything that is random here ({full.seed})")
    parser.add_argument("--spare", action="append", metavar="FUNCTION", help="do not kill it; may be given often")
    parser.add_argument("--json", type=Path, default=KEPT, metavar="FILE", help=f"where the report is kept ({KEPT})")
    return parser.parse_args(argv)


def plan_of(asked: argparse.Namespace) -> Plan:
    sizes = ("seconds", "events", "kills", "pause_seconds", "probes", "flood_rate", "hanging_targets")
    names = (*sizes, "ratio", "seed")
    given = {name: getattr(asked, name) for name in names if getattr(asked, name) is not None}
    plan = replace(SMALL if asked.small else Plan(), **given)
    return replace(plan, spared=frozenset(asked.spare or ()))


def main(argv: list[str] | None = None) -> int:
    asked = parsed(argv)
    # Whoever ends us must not leave an emulator behind, least of all one that is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with own_hub() as hub:
        told = report.document(run(hub, plan_of(asked)))
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(report.as_text(told))
    report.show(Console(width=120), told)
    for name, found in told["promises"].items():
        for example in found["examples"]:
            sys.stderr.write(f"broken: {name}: {example}\n")
    return 0 if told["kept"] else 1


if __name__ == "__main__":
    sys.exit(main())
