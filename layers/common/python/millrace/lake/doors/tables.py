"""Tables, quarantine and registry over HTTP, for operators (C5, C7)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millrace.ledger.domain.errors import BadRequest
from millrace.runtime.http import Request, Response, to_json
from millrace.runtime.requests import flag_of, whole

if TYPE_CHECKING:
    from millrace.lake.application.show_tables import ShowTables
    from millrace.lake.application.steer_quarantine import SteerQuarantine
    from millrace.lake.application.steer_registry import SteerRegistry
    from millrace.ledger.application.audited import Audited

MOST_LISTED = 100
MOST_AFTER_BYTES = 1_024
EVERY_PARTITION = "*"
"""What the audit has of lines and of the registry is for those who see every partition."""


def show_tables(show: ShowTables, request: Request) -> Response:
    identity = request.identity()
    request.only_query()
    return Response(to_json(show(identity)))


def list_quarantine(steer: SteerQuarantine, request: Request) -> Response:
    identity = request.identity()
    request.only_query("reason", "all", "after", "max")
    limit = whole("max", request.query("max") or "50", 1, MOST_LISTED)
    after = request.query("after") or ""
    if len(after.encode("utf-8", "surrogatepass")) > MOST_AFTER_BYTES:
        raise BadRequest(f"after must be at most {MOST_AFTER_BYTES} bytes of UTF-8.", field="after")
    every = flag_of("all", request.query("all"))
    page = steer.page(identity, request.query("reason"), after, limit, every=every)
    request.noted.update(entries=len(page["entries"]))
    return Response(to_json(page))


def show_quarantined(steer: SteerQuarantine, request: Request) -> Response:
    identity = request.identity()
    request.only_query()
    return Response(to_json(steer.show(identity, request.path("id"))))


def redrive_quarantine(steer: SteerQuarantine, audited: Audited, request: Request) -> Response:
    """A line is a content: the audit is told which entry, not what was put in its place."""
    identity, body = request.identity(), request.json()
    redrive = partial(steer.redrive, identity, body)
    answer = audited(identity, "quarantine_redrive", redrive, partition=EVERY_PARTITION)
    request.noted.update(redriven=len(answer["redriven"]))
    return Response(to_json(answer))


def repair_quarantined(steer: SteerQuarantine, audited: Audited, request: Request) -> Response:
    identity, id_, body = request.identity(), request.path("id"), request.json()
    repair = partial(steer.repair, identity, id_, body)
    return Response(to_json(audited(identity, "quarantine_repair", repair, entry=id_, partition=EVERY_PARTITION)))


def read_registry(steer: SteerRegistry, request: Request) -> Response:
    identity = request.identity()
    request.only_query()
    return Response(to_json(steer.read(identity)))


def put_registry(steer: SteerRegistry, audited: Audited, request: Request) -> Response:
    identity, body = request.identity(), to_json(request.json()).encode()
    put = partial(steer.put, identity, body)
    return Response(to_json(audited(identity, "registry_put", put, partition=EVERY_PARTITION)))
