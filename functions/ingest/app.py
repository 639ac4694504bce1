"""POST /api/v1/events/batch/: take a batch of events into a team's journal."""

from __future__ import annotations

from millrace.runtime import delivery_wiring, wiring
from millrace.runtime.delivery.doors import ingest
from millrace.runtime.http import endpoint
from millrace.runtime.snapshot import before_snapshot

before_snapshot(lambda: (wiring.tokens(), delivery_wiring.ingest()))

handler = endpoint(ingest)
