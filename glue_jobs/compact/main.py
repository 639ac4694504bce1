"""The compaction job: `python -m glue_jobs.compact.main`, or this file as the script of a Glue job."""

from __future__ import annotations

import argparse
import time

from pyspark.sql import SparkSession

from glue_jobs import arguments
from glue_jobs.compact.run import NOTHING_NEW, OVERTAKEN, PUBLISHED, Compact
from glue_jobs.for_readers import serve_readers
from glue_jobs.progress import StageTimes, outcome
from glue_jobs.session import SMALL_BYTES
from glue_jobs.store import open_store
from millrace.lake.application.registries import current_registry


def main(argv: list[str] | None = None) -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("--batch", type=arguments.whole, default=10_000, help="archive objects in one run at most")
    asked, others = arguments.parsed(parser, argv)
    return arguments.ended(lambda: _run(asked, others))


def _run(asked: argparse.Namespace, others: list[str]) -> int:
    begun, progress = time.monotonic(), StageTimes(arguments.tell)
    workspace = open_store(asked.store, asked.stage)
    registry = current_registry(workspace.objects)

    def session(size: int) -> SparkSession:
        small = size <= SMALL_BYTES
        return SparkSession.getActiveSession() or arguments.session("millrace-compact", asked, others, small)

    compact = Compact(
        session,
        workspace,
        registry,
        arguments.new_run,
        arguments.now_ms,
        progress,
        asked.batch,
    )
    while True:
        progress("listing the archive")
        report = compact()
        progress.end()
        if report.outcome == PUBLISHED:
            for line in outcome(report.edition.counts, report.size):
                arguments.tell(line)
        arguments.tell(f"{report.outcome}: edition {report.edition.number}")
        if report.outcome in (NOTHING_NEW, OVERTAKEN) or not report.more:
            break
    progress("bringing the tables of other readers to it")
    removed = serve_readers(asked, workspace, progress)
    progress.end()
    arguments.tell(f"{removed} unreachable files removed; the run took {time.monotonic() - begun:.1f} s")
    return 0


if __name__ == "__main__":
    arguments.leave(main())
