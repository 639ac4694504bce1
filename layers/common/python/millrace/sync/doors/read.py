"""Reading a project over HTTP: one page of its events as JSON (S6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millrace.runtime.http import Request, Response
from millrace.sync.domain.read import page_json

if TYPE_CHECKING:
    from millrace.sync.application.read_project import ReadProject


def sync(read: ReadProject, request: Request) -> Response:
    identity, project = request.identity(), request.path("project")
    asked, page = read(identity, project, request.json())
    request.noted.update(project=project, since=asked.since, events=len(page.events), has_more=page.has_more)
    return Response(page_json(asked.partitions, page))
