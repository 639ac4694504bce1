"""Submitting over HTTP: one result per item, inside a 200 (S2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millrace.ledger.domain.metrics import Metric
from millrace.runtime import observe
from millrace.runtime.http import Request, Response, to_json

if TYPE_CHECKING:
    from millrace.sync.application.submit import Submit


def submit(commit: Submit, request: Request) -> Response:
    identity, project = request.identity(), request.path("project")
    results = commit(identity, project, request.json(), trace=request.trace)
    committed = sum(result["status"] == "committed" for result in results)
    request.noted.update(project=project, committed=committed, rejected=len(results) - committed)
    observe.count(
        {Metric.EVENTS_COMMITTED: committed, Metric.EVENTS_REFUSED: len(results) - committed}, contract="sync"
    )
    return Response(to_json({"results": results}))
