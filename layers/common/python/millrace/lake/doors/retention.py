"""Retention over HTTP: what an operator sets for a scope, and what holds for it (C8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millrace.runtime.http import Request, Response, to_json

if TYPE_CHECKING:
    from millrace.lake.application.set_retention import SetRetention


def set_retention(retention: SetRetention, request: Request) -> Response:
    identity, (contract, scope) = request.identity(), _scope(request)
    return Response(to_json(retention(identity, contract, scope, request.json())))


def read_retention(retention: SetRetention, request: Request) -> Response:
    identity, (contract, scope) = request.identity(), _scope(request)
    request.only_query()
    return Response(to_json(retention.read(identity, contract, scope)))


def _scope(request: Request) -> tuple[str, str]:
    contract, scope = request.path("contract"), request.path("scope")
    request.noted.update(contract=contract, scope=scope)
    return contract, scope
