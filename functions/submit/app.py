"""POST /v1/projects/{project}/submit_events: commit a batch of events, each exactly once."""

from __future__ import annotations

from millrace.runtime import bearer
from millrace.runtime.http import endpoint
from millrace.runtime.snapstart import before_snapshot
from millrace.sync import wiring
from millrace.sync.doors.submit import submit

before_snapshot(lambda: (bearer.tokens(), wiring.submit()))

handler = endpoint(lambda request: submit(wiring.submit(), request))
