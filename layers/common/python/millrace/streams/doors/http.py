"""The streams contract over HTTP: what a request asks of the use cases, and how their errors are worded (T12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millrace.ledger.application.audit import AuditFilter
from millrace.ledger.domain.errors import BadRequest, MillraceError
from millrace.runtime.http import Request, Response, retry_headers, to_json
from millrace.runtime.requests import flag_of, whole
from millrace.streams.domain.errors import as_sdk_error

if TYPE_CHECKING:
    from millrace.ledger.application.audit import AuditLedger
    from millrace.streams.application.diagnostics import Diagnostics
    from millrace.streams.application.markers import ManageMarkers
    from millrace.streams.application.poll import Poll
    from millrace.streams.application.runtime_access import Negotiate
    from millrace.streams.application.runtime_status import RuntimeStatus

MAX_NUMBER = 2**53 - 1
MAX_AFTER_BYTES = 512


def refuse(error: MillraceError) -> Response:
    failure = as_sdk_error(error)
    return Response(to_json(failure.body()), failure.status, headers=retry_headers(failure))


def negotiate(agree: Negotiate, request: Request) -> Response:
    identity = request.identity()
    return Response(to_json(agree(identity, request.path("runtime_id"), request.json())))


def effective(agreed: Negotiate, request: Request) -> Response:
    return Response(to_json(agreed.effective(request.identity(), request.path("runtime_id"))))


def poll(read: Poll, request: Request) -> Response:
    identity = request.identity()
    request.only_query("cursor", "max")
    wanted = _number(request, "max", 0)
    batch = read(identity, request.path("runtime_id"), request.path("stream_id"), request.query("cursor"), wanted)
    request.noted.update(events=len(batch.events), dropped=batch.dropped_count)
    events = b",".join(batch.events).decode()
    rest = to_json({"next_cursor": batch.next_cursor, "dropped_count": batch.dropped_count})
    return Response(f'{{"events":[{events}],{rest[1:]}')


def status(fold: RuntimeStatus, request: Request) -> Response:
    identity = request.identity()
    request.only_query("rebuild")
    rebuild = flag_of("rebuild", request.query("rebuild"))
    return Response(to_json(fold(identity, request.path("runtime_id"), rebuild=rebuild)))


def create_marker(markers: ManageMarkers, request: Request) -> Response:
    identity = request.identity()
    return Response(to_json(markers.create(identity, request.path("runtime_id"), request.json())))


def list_markers(markers: ManageMarkers, request: Request) -> Response:
    identity = request.identity()
    request.only_query("cursor", "max", "topic_id")
    page = markers.list(
        identity,
        request.path("runtime_id"),
        request.query("cursor"),
        _number(request, "max", 0),
        request.query("topic_id"),
    )
    return Response(to_json(page))


def move_marker(markers: ManageMarkers, request: Request) -> Response:
    identity = request.identity()
    runtime_id, marker_id = request.path("runtime_id"), request.path("marker_id")
    return Response(to_json(markers.move(identity, runtime_id, marker_id, request.json())))


def delete_marker(markers: ManageMarkers, request: Request) -> Response:
    identity = request.identity()
    request.only_query("expected_revision")
    runtime_id, marker_id = request.path("runtime_id"), request.path("marker_id")
    revision = _number(request, "expected_revision", 0)
    return Response(to_json(markers.delete(identity, runtime_id, marker_id, revision)))


def make_grant(diagnostics: Diagnostics, request: Request) -> Response:
    identity = request.identity()
    return Response(to_json(diagnostics.grant(identity, request.path("runtime_id"), request.json())))


def list_grants(diagnostics: Diagnostics, request: Request) -> Response:
    return Response(to_json(diagnostics.grants(request.identity(), request.path("runtime_id"))))


def revoke_grant(diagnostics: Diagnostics, request: Request) -> Response:
    identity = request.identity()
    request.only_query("grant_id")
    grant_id = request.query("grant_id") or ""
    return Response(to_json(diagnostics.revoke(identity, request.path("runtime_id"), grant_id)))


def read_raw(diagnostics: Diagnostics, request: Request) -> Response:
    identity = request.identity()
    request.only_query("after", "max")
    limit = _number(request, "max", 1, 100)
    runtime_id, grant_id = request.path("runtime_id"), request.path("grant_id")
    after = request.query("after") or ""
    if len(after.encode()) > MAX_AFTER_BYTES:
        raise BadRequest("after must be the next_after of an earlier page.", field="after")
    page = diagnostics.read(identity, runtime_id, grant_id, after, limit or 50)
    return Response(to_json(page))


def read_audit(audit: AuditLedger, request: Request) -> Response:
    identity = request.identity()
    request.only_query("after", "before", "order", "max", "action", "client", "since_ms")
    limit = _number(request, "max", 1, 500) or 100
    wanted = AuditFilter(
        request.query("action") or "", request.query("client") or "", _number(request, "since_ms", 0) or 0
    )
    order = request.query("order") or "oldest"
    if order not in ("oldest", "newest"):
        raise BadRequest("order must be oldest or newest.", field="order")
    if request.query("before" if order == "oldest" else "after") is not None:
        raise BadRequest("Give after with the order oldest, before with the order newest.", field="order")
    if order == "newest":
        return Response(to_json(audit.newest_first(identity, _number(request, "before", 1), limit, wanted)))
    return Response(to_json(audit.read(identity, _number(request, "after", 0) or 0, limit, wanted)))


def _number(request: Request, name: str, low: int, high: int = MAX_NUMBER) -> int | None:
    text = request.query(name)
    return None if text is None else whole(name, text, low, high)
