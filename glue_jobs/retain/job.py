"""The hub's retention job: ask the hub what may go and who still reads, then prune by that.

`python -m glue_jobs.retain.job`, or this file as the script of a Glue job. Without `--execute true` it only looks.
"""

from __future__ import annotations

import argparse

from glue_jobs import arguments
from glue_jobs.retain import main as retain
from glue_jobs.store import STACK_FILE, open_store
from millrace.lake.application.request_retention import put_request, request_of
from millrace.ledger.domain.errors import BadRequest
from millrace.operators.adapters.clients import dynamodb_client, local_tables
from millrace.operators.wiring.hub import Hub

TABLES = ("--log_table", "--state_table", "--delivery_table")


def main(argv: list[str] | None = None) -> int:
    parser = retain.parser(__doc__)
    for name in TABLES:
        parser.add_argument(name, help="of the hub; default: the tables of the stack that runs here")
    asked, others = arguments.parsed(parser, argv)
    return arguments.ended(lambda: _run(asked, others))


def _run(asked: argparse.Namespace, others: list[str]) -> int:
    hub = _hub(asked)
    report = hub.retain()(dry_run=True)
    put_request(hub.objects, retain.REQUEST, request_of(report.plans))
    arguments.tell(
        f"{len(report.plans)} ledgers have a policy; {sum(plan.goes.count for plan in report.plans)} events may go"
    )
    return retain.run(asked, others, retain.REQUEST, hub.prune)


def _hub(asked: argparse.Namespace) -> Hub:
    objects = open_store(asked.store, asked.stage).objects
    if asked.log_table and asked.state_table and asked.delivery_table:
        return Hub(dynamodb_client(), asked.log_table, asked.state_table, asked.delivery_table, objects)
    if asked.store or not STACK_FILE.is_file():
        raise BadRequest(f"Name {', '.join(TABLES)}, or start a hub with `make run`.", field="log_table")
    settings, tables = local_tables(STACK_FILE)
    return Hub(dynamodb_client(**settings), tables["log"], tables["state"], tables["delivery"], objects)


if __name__ == "__main__":
    arguments.leave(main())
