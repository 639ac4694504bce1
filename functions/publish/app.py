"""POST /v1/realtime/events: validate and store one event or many, each once in the tenant."""

from __future__ import annotations

from millrace.realtime import wiring
from millrace.realtime.doors.answers import refuse
from millrace.realtime.doors.publishing import publish
from millrace.runtime import bearer
from millrace.runtime.http import endpoint
from millrace.runtime.snapstart import before_snapshot

before_snapshot(lambda: (bearer.tokens(), wiring.take_events()))

handler = endpoint(lambda request: publish(wiring.take_events(), request), refuse)
