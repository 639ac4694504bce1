"""POST /v1/catalog/{domain}/events: record one event or many in a domain, each once under its idempotency key."""

from __future__ import annotations

from millrace.lake import wiring
from millrace.lake.doors.catalog import record
from millrace.runtime import bearer
from millrace.runtime.http import endpoint
from millrace.runtime.snapstart import before_snapshot

before_snapshot(lambda: (bearer.tokens(), wiring.record_catalog()))

handler = endpoint(lambda request: record(wiring.record_catalog(), wiring.read_catalog_protobuf, request))
