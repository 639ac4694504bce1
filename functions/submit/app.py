"""POST /v1/projects/{project}/submit_events: commit a batch of events, each exactly once."""

from __future__ import annotations

import json

from millrace.ledger.domain.metrics import Metric
from millrace.runtime import bearer, observe
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapstart import before_snapshot
from millrace.sync import wiring

before_snapshot(lambda: (bearer.tokens(), wiring.submit()))


@endpoint
def handler(request: Request) -> Response:
    identity = request.identity()
    project = request.path("project")
    results = wiring.submit()(identity, project, request.json())
    committed = sum(result["status"] == "committed" for result in results)
    request.noted.update(project=project, committed=committed, rejected=len(results) - committed)
    observe.count(
        {Metric.EVENTS_COMMITTED: committed, Metric.EVENTS_REFUSED: len(results) - committed}, contract="sync"
    )
    return Response(json.dumps({"results": results}, ensure_ascii=False, separators=(",", ":")))
