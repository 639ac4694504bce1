"""POST /v1/projects/{project}/sync: read a project's events from any position, page by page."""

from __future__ import annotations

from millrace.domain.access import CONSUMER
from millrace.domain.ledger import Ledger
from millrace.domain.sync_read import HTTP_PAGE_BYTES, check_sync, page_json
from millrace.runtime import wiring
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapshot import before_snapshot

before_snapshot(lambda: (wiring.tokens(), wiring.sync()))


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
