"""The hub's retention job: ask the hub what may go and who still reads, then prune by that.

`python -m glue_jobs.retain.job`, or this file as the script of a Glue job. Without `--execute true` it only looks.
"""

from __future__ import annotations

import argparse
import sys

from glue_jobs import arguments
from glue_jobs.retain import main as retain
from glue_jobs.retain.run import PruneLog
from glue_jobs.store import STACK_FILE, open_store
from millrace.adapters.operator_clients import dynamodb_client, local_tables
from millrace.application.request_retention import put_request, request_of
from millrace.domain.errors import BadRequest
from millrace.runtime.operator_wiring import Hub

PRUNER = "glue_jobs.retain.job:pruner"
TABLES = ("--log_table", "--state_table", "--delivery_table")


def main(argv: list[str] | None = None) -> int:
    given = sys.argv[1:] if argv is None else argv
    told = arguments.ended(lambda: _ask(given))
    return told or retain.main([*given, "--pruner", PRUNER])


def pruner() -> PruneLog:
    """The callable which empties the log's pages."""
    return _hub(sys.argv[1:]).prune()


def _ask(given: list[str]) -> int:
    hub = _hub(given)
    report = hub.retain()(dry_run=True)
    put_request(hub.objects, retain.REQUEST, request_of(report.plans))
    arguments.tell(
        f"{len(report.plans)} ledgers have a policy; {sum(plan.goes.count for plan in report.plans)} events may go"
    )
    return 0


def _hub(given: list[str]) -> Hub:
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    for name in ("--store", "--stage", *TABLES):
        parser.add_argument(name)
    asked, _ = parser.parse_known_args(given)
    objects = open_store(asked.store, asked.stage).objects
    if asked.log_table and asked.state_table and asked.delivery_table:
        return Hub(dynamodb_client(), asked.log_table, asked.state_table, asked.delivery_table, objects)
    if asked.store or not STACK_FILE.is_file():
        raise BadRequest(f"Name {', '.join(TABLES)}, or start a hub with `make run`.", field="log_table")
    settings, tables = local_tables(STACK_FILE)
    return Hub(dynamodb_client(**settings), tables["log"], tables["state"], tables["delivery"], objects)


if __name__ == "__main__":
    sys.exit(main())
