"""POST /v1/projects/{project}/sync: read a project's events from any position, page by page."""

from __future__ import annotations

from millrace.runtime import bearer
from millrace.runtime.http import endpoint
from millrace.runtime.snapstart import before_snapshot
from millrace.sync import wiring
from millrace.sync.doors.read import sync

before_snapshot(lambda: (bearer.tokens(), wiring.read_project()))

handler = endpoint(lambda request: sync(wiring.read_project(), request))
