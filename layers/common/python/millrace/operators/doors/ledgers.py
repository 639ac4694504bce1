"""Ledgers and their events over HTTP, for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millrace.ledger.domain.errors import BadRequest
from millrace.operators.application.read_events import EventFilter
from millrace.runtime.http import Request, Response, to_json
from millrace.runtime.requests import whole

if TYPE_CHECKING:
    from millrace.operators.application.read_events import ReadEvents
    from millrace.operators.application.show_ledgers import ShowLedgers

MOST_LEDGERS, MOST_EVENTS = 100, 500
MAX_NUMBER = 2**53 - 1


def list_ledgers(show: ShowLedgers, request: Request) -> Response:
    identity = request.identity()
    request.only_query("contract", "prefix", "after", "max")
    limit = whole("max", request.query("max") or "50", 1, MOST_LEDGERS)
    contract, prefix, after = (request.query(name) or "" for name in ("contract", "prefix", "after"))
    return Response(to_json(show(identity, contract, prefix, after, limit)))


def get_ledger(show: ShowLedgers, request: Request) -> Response:
    identity, (contract, scope) = request.identity(), _scope(request)
    request.only_query()
    return Response(to_json(show.one(identity, contract, scope)))


def list_events(read: ReadEvents, request: Request) -> Response:
    identity, (contract, scope) = request.identity(), _scope(request)
    request.only_query("after", "at_ms", "max", "partition", "type")
    after, at_ms = request.query("after"), request.query("at_ms")
    if after is not None and at_ms is not None:
        raise BadRequest("Give after or at_ms, not both.", field="at_ms")
    page = read(
        identity,
        contract,
        scope,
        after=whole("after", after or "0", 0, MAX_NUMBER),
        at_ms=None if at_ms is None else whole("at_ms", at_ms, 0, MAX_NUMBER),
        limit=whole("max", request.query("max") or "100", 1, MOST_EVENTS),
        wanted=EventFilter(request.query("partition"), request.query("type")),
    )
    request.noted.update(events=len(page["events"]))
    return Response(to_json(page))


def find_event(read: ReadEvents, request: Request) -> Response:
    identity, (contract, scope) = request.identity(), _scope(request)
    request.only_query("id")
    return Response(to_json(read.one(identity, contract, scope, request.query("id") or "")))


def _scope(request: Request) -> tuple[str, str]:
    contract, scope = request.path("contract"), request.path("scope")
    request.noted.update(contract=contract, scope=scope)
    return contract, scope
