"""The retention job: `python -m glue_jobs.retain.main`, or this file as the script of a Glue job."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable

from glue_jobs import arguments
from glue_jobs.for_readers import serve_readers
from glue_jobs.retain.run import DONE, OVERTAKEN, PruneLog, Retain
from glue_jobs.store import open_store
from millrace.lake.domain.edition import ROOT
from millrace.lake.domain.retention import RetentionRequest
from millrace.ledger.domain.errors import BadRequest, NotFound

REQUEST = f"{ROOT}retention.json"


def parser(description: str | None) -> argparse.ArgumentParser:
    made = arguments.parser(description)
    made.add_argument("--execute", choices=("true", "false"), default="false", help="prune; default: a dry run")
    return made


def main(argv: list[str] | None = None) -> int:
    made = parser(__doc__)
    made.add_argument("--request", default=REQUEST, help=f"the object that says what may go; default {REQUEST}")
    made.add_argument("--pruner", help="module:function that makes the callable which empties the log's pages")
    asked, others = arguments.parsed(made, argv)
    return arguments.ended(lambda: run(asked, others, asked.request, lambda: _pruner(asked.pruner)))


def run(asked: argparse.Namespace, others: list[str], name: str, pruner: Callable[[], PruneLog]) -> int:
    """Retain by the request of this name."""
    workspace = open_store(asked.store, asked.stage)
    stored = workspace.objects.get(name)
    if stored is None:
        raise NotFound("There is no retention request, so nothing may go.", object=name)
    request = RetentionRequest.parse(stored.data)
    prune_log = pruner() if asked.execute == "true" else None
    spark = arguments.session("millrace-retain", asked, others)
    report = Retain(spark, workspace, arguments.new_run, arguments.now_ms, prune_log, arguments.tell)(request)
    for ledger, ranges in sorted(report.plan.ranges.items()):
        arguments.tell(f"{ledger}: {ranges.count} events in {len(ranges.spans)} ranges, up to {ranges.last}")
    summary = f"{report.outcome}: {report.plan.events} events, {len(report.plan.objects)} archive objects"
    summary += f", {len(report.plan.quarantined)} lines in quarantine" if report.plan.quarantined else ""
    arguments.tell(summary + (f", {report.bodies} bodies; {report.manifest}" if report.manifest else ""))
    for ledger in report.unfinished:
        arguments.tell(f"{ledger}: the log has not let go of everything yet, so all of it stays; run again")
    if report.outcome == DONE:
        serve_readers(asked, workspace)
    return 1 if report.outcome == OVERTAKEN else 0


def _pruner(name: str | None) -> PruneLog:
    module, _, function = (name or "").partition(":")
    if not module or not function:
        raise BadRequest("--execute needs a --pruner, module:function.", field="pruner")
    try:
        make = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise BadRequest(f"--pruner {name} cannot be found: {error}.", field="pruner") from error
    made: PruneLog = make()
    return made


if __name__ == "__main__":
    arguments.leave(main())
