"""POST /api/v1/events/batch/: take a batch of events into a team's journal."""

from __future__ import annotations

from millrace.delivery import wiring
from millrace.delivery.doors.http import ingest
from millrace.delivery.doors.refusals import refuse_batch
from millrace.runtime import bearer
from millrace.runtime.http import endpoint
from millrace.runtime.snapstart import before_snapshot

before_snapshot(lambda: (bearer.tokens(), wiring.ingest()))

handler = endpoint(lambda request: ingest(wiring.ingest(), request), refuse_batch)
