"""Delivery over HTTP: the operator's doors to targets, and the door by which events come in."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millrace.delivery.doors.bodies import json_of
from millrace.ledger.domain.errors import NotFound
from millrace.ledger.domain.metrics import Metric
from millrace.runtime import observe
from millrace.runtime.http import Request, Response, to_json
from millrace.runtime.requests import whole

if TYPE_CHECKING:
    from millrace.delivery.application.hub_status import HubStatus
    from millrace.delivery.application.ingest import Ingest
    from millrace.delivery.application.inspect_deliveries import InspectDeliveries
    from millrace.delivery.application.manage_targets import ManageTargets
    from millrace.ledger.application.audited import Audited

MOST_LISTED = 500
MOST_AFTER_BYTES = 4096
COUNTED = {
    "success": Metric.EVENTS_COMMITTED,
    "duplicate": Metric.EVENTS_DEDUPLICATED,
    "rejected": Metric.EVENTS_REFUSED,
}


def ingest(keep: Ingest, request: Request) -> Response:
    """The route takes every path below its own: an HTTP API has no routes that end in a slash."""
    if request.path("proxy").rstrip("/") != "batch":
        raise NotFound("There is no such route.")
    identity = request.identity()
    results = keep(identity, json_of(request), request.trace)
    counts = {name: sum(one["status"] == name for one in results) for name in COUNTED}
    request.noted.update(counts)
    observe.count({COUNTED[name]: count for name, count in counts.items()}, contract="delivery")
    return Response(to_json({"results": results}))


def put_target(targets: ManageTargets, audited: Audited, request: Request) -> Response:
    identity = request.identity()
    target_id, body = request.path("target_id"), request.json()
    put = partial(targets.put, identity, target_id, body)
    return Response(to_json(audited(identity, "target_put", put, target_id=target_id)))


def patch_target(targets: ManageTargets, audited: Audited, request: Request) -> Response:
    identity = request.identity()
    target_id, body = request.path("target_id"), request.json()
    patch = partial(targets.patch, identity, target_id, body)
    return Response(to_json(audited(identity, "target_patch", patch, target_id=target_id)))


def get_target(targets: ManageTargets, request: Request) -> Response:
    return Response(to_json(targets.get(request.identity(), request.path("target_id"))))


def delete_target(targets: ManageTargets, audited: Audited, request: Request) -> Response:
    identity, target_id = request.identity(), request.path("target_id")
    delete = partial(targets.delete, identity, target_id)
    return Response(to_json(audited(identity, "target_delete", delete, target_id=target_id)))


def drain_target(targets: ManageTargets, audited: Audited, request: Request) -> Response:
    identity, target_id = request.identity(), request.path("target_id")
    drain = partial(targets.drain, identity, target_id)
    return Response(to_json(audited(identity, "target_drain", drain, target_id=target_id)))


def list_deliveries(deliveries: InspectDeliveries, request: Request) -> Response:
    identity = request.identity()
    request.only_query("status", "after", "max")
    limit = whole("max", request.query("max") or "100", 1, MOST_LISTED)
    after = (request.query("after") or "")[:MOST_AFTER_BYTES]
    page = deliveries.page(identity, request.path("target_id"), request.query("status"), after, limit)
    request.noted.update(deliveries=len(page["deliveries"]))
    return Response(to_json(page))


def retry_delivery(deliveries: InspectDeliveries, audited: Audited, request: Request) -> Response:
    identity = request.identity()
    target_id, event_id = request.path("target_id"), request.path("event_id")
    retry = partial(deliveries.retry, identity, target_id, event_id)
    return Response(to_json(audited(identity, "delivery_retry", retry, target_id=target_id, event_id=event_id)))


def status(hub: HubStatus, request: Request) -> Response:
    return Response(to_json(hub(request.identity())))
