"""The jobs on a real stack: what was committed is archived, compacted, and pruned everywhere by policy (C8)."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

from millrace.lake.adapters.iceberg_catalog import iceberg_tables
from millrace.lake.application.editions import Editions
from millrace.lake.application.verify_tables import TableVerdict, VerifyTables
from millrace.lake.domain.edition import EVENTS, Edition
from tests.e2e.api import item
from tests.e2e.conftest import Hub
from tests.e2e.lake import archived, done, eventually, operator, sent, session_event
from tests.e2e.test_readme import ROOT
from tests.jobs.conftest import QUICK_ARGUMENTS


def run(hub: Hub, folder: Path, job: str, *options: str) -> str:
    hub.stack.write(folder / ".local")
    paths = (ROOT, ROOT / "layers/common/python", ROOT / "clients/python")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-m", f"glue_jobs.{job}", "--memory", "1g", *QUICK_ARGUMENTS, *options]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended.stderr


def verified(hub: Hub) -> tuple[Edition, list[TableVerdict]]:
    """The Iceberg tables in the stack's Data Catalog, in the database that its template makes."""
    settings = {
        "endpoint_url": hub.stack.endpoint_url,
        "region_name": hub.stack.region,
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
    }
    objects = operator(hub).objects
    with iceberg_tables(f"s3://{hub.stack.archive_bucket}", objects, {}, **settings) as tables:
        return VerifyTables(objects, tables)()


def test_events_are_compacted_and_then_pruned_from_log_tables_and_archive(stack: Hub, tmp_path: Path) -> None:
    token: dict[str, Any] = {"tenant": f"tenant-{uuid.uuid4().hex[:8]}", "roles": ["producer", "consumer", "operator"]}
    project, session = f"sync#{token['tenant']}#demo", f"realtime#{token['tenant']}#s1"
    items = [item(f"e{n}", n, ["a", "b"] if n == 3 else ["a"]) for n in range(1, 6)]
    done(sent(stack, "POST", "/v1/projects/demo/submit_events", {"events": items}, **token))
    eventually(lambda: len(archived(stack, token["tenant"])) == 5, "the project was not archived")
    done(sent(stack, "POST", "/v1/realtime/events", session_event("e1", "s1"), **token))
    eventually(lambda: len(archived(stack, token["tenant"])) == 6, "the session was not archived")
    run(stack, tmp_path, "compact.main")
    done(sent(stack, "PUT", "/v1/retention/sync/demo", {"advance_to": 4}, **token))
    done(sent(stack, "PUT", "/v1/retention/sync/demo", {"partition": "b", "advance_to": 2}, **token))
    done(sent(stack, "PUT", "/v1/retention/realtime/s1", {"advance_to": 1}, **token))
    editions = Editions(operator(stack).objects)
    before = editions.current().edition
    told = run(stack, tmp_path, "retain.job", "--execute", "true")
    assert f"{project}: 3 events in 2 ranges, up to 4" in told
    page = done(sent(stack, "POST", "/v1/projects/demo/sync", {"since_committed_id": 0}, **token))
    assert [event["committed_id"] for event in page["events"]] == [3, 5], "the log"
    assert before.rows(EVENTS) - editions.current().edition.rows(EVENTS) == 4, "the tables"
    edition, verdicts = verified(stack)
    assert (edition.run, [verdict.equal for verdict in verdicts]) == (editions.current().edition.run, [True] * 3)
    held = {(line["ledger"], line["sequence_position"]) for line in archived(stack, token["tenant"])}
    assert held >= {(project, 3), (project, 5)}
    assert (session, 1) not in held, "an archive object none of whose events are kept"
