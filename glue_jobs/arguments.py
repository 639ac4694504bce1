"""Job arguments, the same on Glue and on a laptop. Glue adds arguments of its own; those are left alone."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Callable, Iterable

from pyspark.sql import SparkSession

from glue_jobs.session import spark_session
from glue_jobs.store import STACK_FILE
from millrace.lake.domain.archive import sortable_time
from millrace.lake.domain.edition import DATABASE
from millrace.ledger.domain.errors import MillraceError

MOST_HOURS = 1_000_000


def parser(description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description, allow_abbrev=False)
    made.add_argument("--store", help=f"s3://bucket/prefix or a directory; default: the bucket in {STACK_FILE}")
    made.add_argument("--stage", help="a folder to stage S3 objects in, where Spark has no S3 client")
    made.add_argument("--local", choices=("true", "false"), help="run Spark in this process; default: unless on Glue")
    made.add_argument("--memory", default="2g", help="of a local Spark; default 2g")
    made.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of a local Spark")
    made.add_argument(
        "--grace-hours", type=_hours, default=24.0, help="hours that unreachable files are kept; default 24"
    )
    made.add_argument("--database", default=DATABASE, help=f"the catalog's, of the Iceberg tables; default {DATABASE}")
    return made


def parsed(parser: argparse.ArgumentParser, argv: list[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """Glue gives a job arguments of its own, `--JOB_NAME` among them; elsewhere an unknown one is a mistake."""
    asked, others = parser.parse_known_args(argv)
    if others and not on_glue(others):
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    return asked, others


def on_glue(arguments: Iterable[str]) -> bool:
    """Glue names its job to every script, which tells it from a laptop."""
    return "--JOB_NAME" in arguments


def _hours(text: str) -> float:
    hours = float(text)
    if not 0 <= hours < MOST_HOURS:
        raise argparse.ArgumentTypeError(f"must be a number of hours from 0 to {MOST_HOURS}")
    return hours


def whole(text: str) -> int:
    """An integer from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be an integer from 1")
    return number


def session(app: str, asked: argparse.Namespace, others: list[str], small: bool = False) -> SparkSession:
    local = asked.local == "true" if asked.local is not None else not on_glue(others)
    settings = dict(one.partition("=")[::2] for one in asked.conf)
    return spark_session(app, local=local, memory=asked.memory, settings=settings, small=small)


def new_run() -> str:
    """Sorts by time, and no two runs share it."""
    return f"{sortable_time(now_ms())}-{secrets.token_hex(8)}"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def tell(message: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {message}\n")
    sys.stderr.flush()


def leave(code: int) -> None:
    """End a script. On Glue an exit may count as a failure whatever its code, so success just ends."""
    if code:
        sys.exit(code)


def ended(work: Callable[[], int]) -> int:
    """Our own errors are one line for a person; others keep their stack trace."""
    try:
        return work()
    except MillraceError as error:
        tell(f"failed: {error.message}" + "".join(f" [{key}: {value}]" for key, value in error.details.items()))
        return 1
