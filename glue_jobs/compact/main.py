"""The compaction job: `python -m glue_jobs.compact.main`, or this file as the script of a Glue job."""

from __future__ import annotations

import argparse
import json

from glue_jobs import arguments
from glue_jobs.compact.run import NOTHING_NEW, OVERTAKEN, Compact
from glue_jobs.for_readers import serve_readers
from glue_jobs.store import open_store
from millrace.lake.application.registries import current_registry


def main(argv: list[str] | None = None) -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("--batch", type=arguments.whole, default=10_000, help="archive objects in one run at most")
    asked, others = arguments.parsed(parser, argv)
    return arguments.ended(lambda: _run(asked, others))


def _run(asked: argparse.Namespace, others: list[str]) -> int:
    workspace = open_store(asked.store, asked.stage)
    registry = current_registry(workspace.objects)
    spark = arguments.session("millrace-compact", asked, others)
    compact = Compact(spark, workspace, registry, arguments.new_run, arguments.now_ms, arguments.tell, asked.batch)
    while True:
        report = compact()
        arguments.tell(f"{report.outcome}: edition {report.edition.number} {json.dumps(report.edition.counts)}")
        if report.outcome in (NOTHING_NEW, OVERTAKEN) or not report.more:
            break
    arguments.tell(f"{serve_readers(asked, workspace)} unreachable files removed")
    return 0


if __name__ == "__main__":
    arguments.leave(main())
