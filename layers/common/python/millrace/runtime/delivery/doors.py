"""Delivery over HTTP: the operator's doors to targets, and the door by which events come in."""

from __future__ import annotations

import json
from typing import Any

from millrace.domain.errors import NotFound
from millrace.runtime import delivery_wiring as wiring
from millrace.runtime import observe
from millrace.runtime.delivery.bodies import json_of
from millrace.runtime.http import Request, Response
from millrace.runtime.requests import whole

MOST_LISTED = 500
MOST_AFTER_BYTES = 4096


def to_json(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def ingest(request: Request) -> Response:
    """The route takes every path below its own: an HTTP API has no routes that end in a slash."""
    if request.path("proxy").rstrip("/") != "batch":
        raise NotFound("There is no such route.")
    identity = request.identity()
    results = wiring.ingest()(identity, json_of(request))
    counts = {name: sum(one["status"] == name for one in results) for name in ("success", "duplicate", "rejected")}
    request.noted.update(counts)
    observe.count({name.capitalize(): count for name, count in counts.items()}, contract="delivery")
    return Response(to_json({"results": results}))


def put_target(request: Request) -> Response:
    identity = request.identity()
    return Response(to_json(wiring.targets().put(identity, request.path("target_id"), request.json())))


def get_target(request: Request) -> Response:
    return Response(to_json(wiring.targets().get(request.identity(), request.path("target_id"))))


def list_targets(request: Request) -> Response:
    return Response(to_json(wiring.targets().list(request.identity())))


def delete_target(request: Request) -> Response:
    return Response(to_json(wiring.targets().delete(request.identity(), request.path("target_id"))))


def drain_target(request: Request) -> Response:
    return Response(to_json(wiring.targets().drain(request.identity(), request.path("target_id"))))


def list_deliveries(request: Request) -> Response:
    identity = request.identity()
    request.only_query("status", "after", "max")
    limit = whole("max", request.query("max") or "100", 1, MOST_LISTED)
    after = (request.query("after") or "")[:MOST_AFTER_BYTES]
    page = wiring.inspect().page(identity, request.path("target_id"), request.query("status"), after, limit)
    request.noted.update(deliveries=len(page["deliveries"]))
    return Response(to_json(page))


def retry_delivery(request: Request) -> Response:
    identity = request.identity()
    retried = wiring.inspect().retry(identity, request.path("target_id"), request.path("event_id"))
    return Response(to_json(retried))


def status(request: Request) -> Response:
    return Response(to_json(wiring.status()(request.identity())))
