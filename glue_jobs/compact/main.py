"""The compaction job: `python -m glue_jobs.compact.main`, or this file as the script of a Glue job."""

from __future__ import annotations

import argparse
import json

from glue_jobs import arguments
from glue_jobs.athena import refresh
from glue_jobs.compact.run import NOTHING_NEW, OVERTAKEN, Compact
from glue_jobs.remove_unreachable import remove_unreachable
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
    refresh(workspace)
    removed = remove_unreachable(workspace, arguments.now_ms(), int(asked.grace_hours * 3_600_000))
    arguments.tell(f"{removed} unreachable files removed")
    return 0


if __name__ == "__main__":
    arguments.leave(main())
