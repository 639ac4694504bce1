"""How a hub stands over HTTP, for operators: the whole, its connections, and subscriptions that lost history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millrace.ledger.domain.errors import BadRequest
from millrace.runtime.http import Request, Response, to_json
from millrace.runtime.requests import whole

if TYPE_CHECKING:
    from millrace.operators.application.show_connections import ShowConnections
    from millrace.operators.application.show_degraded import ShowDegraded
    from millrace.operators.application.show_negotiations import ShowNegotiations
    from millrace.operators.application.show_overview import ShowOverview

MOST_LISTED = 100
MOST_AFTER_BYTES = 1_024


def show_overview(show: ShowOverview, request: Request) -> Response:
    identity = request.identity()
    request.only_query()
    answer = show(identity)
    request.noted.update(looked_at=answer["looked_at"], problems=len(answer["problems"]))
    return Response(to_json(answer))


def list_connections(show: ShowConnections, request: Request) -> Response:
    identity = request.identity()
    request.only_query("project", "after", "max")
    return Response(to_json(show(identity, request.query("project") or "", _after(request), _most(request))))


def list_degraded(show: ShowDegraded, request: Request) -> Response:
    identity, runtime_id = request.identity(), request.path("runtime_id")
    request.only_query("after", "max")
    request.noted.update(runtime_id=runtime_id)
    return Response(to_json(show(identity, runtime_id, _after(request), _most(request))))


def list_negotiations(show: ShowNegotiations, request: Request) -> Response:
    identity, runtime_id = request.identity(), request.path("runtime_id")
    request.only_query("after", "max")
    request.noted.update(runtime_id=runtime_id)
    return Response(to_json(show(identity, runtime_id, _after(request), _most(request))))


def _most(request: Request) -> int:
    return whole("max", request.query("max") or "100", 1, MOST_LISTED)


def _after(request: Request) -> str:
    after = request.query("after") or ""
    if len(after.encode("utf-8", "surrogatepass")) > MOST_AFTER_BYTES:
        raise BadRequest(f"after must be at most {MOST_AFTER_BYTES} bytes of UTF-8.", field="after")
    return after
