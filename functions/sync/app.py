"""POST /v1/projects/{project}/sync: read a project's events from any position, page by page."""

from __future__ import annotations

from millrace.ledger.domain.access import CONSUMER
from millrace.ledger.domain.names import Ledger
from millrace.runtime import bearer
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapstart import before_snapshot
from millrace.sync import wiring
from millrace.sync.domain.read import HTTP_PAGE_BYTES, check_sync, page_json

before_snapshot(lambda: (bearer.tokens(), wiring.sync()))


@endpoint
def handler(request: Request) -> Response:
    identity = request.identity()
    identity.require(CONSUMER)
    project = request.path("project")
    identity.require_project(project)
    asked = check_sync(request.json(), identity)
    ledger = Ledger.of("sync", identity.tenant, project)
    page = wiring.sync()(ledger, asked.partitions, asked.since, asked.limit, HTTP_PAGE_BYTES, asked.sync_to)
    request.noted.update(project=project, since=asked.since, events=len(page.events), has_more=page.has_more)
    return Response(page_json(asked.partitions, page))
