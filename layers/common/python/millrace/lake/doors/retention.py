"""Retention over HTTP: what an operator sets for a scope, and what holds for it (C8)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millrace.lake.domain.retention_rules import Scope
from millrace.ledger.domain.access import PARTITION_OF
from millrace.runtime.http import Request, Response, to_json
from millrace.runtime.requests import whole

if TYPE_CHECKING:
    from millrace.lake.application.set_retention import SetRetention
    from millrace.lake.application.show_plan import ShowPlan
    from millrace.ledger.application.audited import Audited

MOST_LISTED = 500
MOST_AFTER_BYTES = 2048


def set_retention(retention: SetRetention, audited: Audited, request: Request) -> Response:
    identity, (contract, scope) = request.identity(), _scope(request)
    change = partial(retention, identity, contract, scope, request.json())
    subject = {"contract": contract, "scope": scope, **_concerned(contract, scope)}
    return Response(to_json(audited(identity, "retention_set", change, **subject)))


def read_retention(retention: SetRetention, request: Request) -> Response:
    identity, (contract, scope) = request.identity(), _scope(request)
    request.only_query()
    return Response(to_json(retention.read(identity, contract, scope)))


def list_retention(retention: SetRetention, request: Request) -> Response:
    identity = request.identity()
    request.only_query("contract", "after", "max")
    limit = whole("max", request.query("max") or "100", 1, MOST_LISTED)
    after = (request.query("after") or "")[:MOST_AFTER_BYTES]
    return Response(to_json(retention.list(identity, request.query("contract"), after, limit)))


def plan_retention(show: ShowPlan, request: Request) -> Response:
    identity, (contract, scope) = request.identity(), _scope(request)
    request.only_query()
    return Response(to_json(show(identity, contract, scope)))


def _scope(request: Request) -> tuple[str, str]:
    contract, scope = request.path("contract"), request.path("scope")
    request.noted.update(contract=contract, scope=scope)
    return contract, scope


def _concerned(contract: str, scope: str) -> dict[str, str]:
    """Who may read of it in the audit: whoever reaches the project or the partition."""
    if contract not in PARTITION_OF:
        return {"project": scope}
    return {"partition": PARTITION_OF[contract](Scope("", contract, scope).parts[0])}
