"""PUT and GET /v1/retention/{contract}/{scope}: what an operator lets go of. Nothing is pruned here."""

from __future__ import annotations

import json

from millrace.lake import wiring
from millrace.runtime import bearer
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapstart import before_snapshot

before_snapshot(lambda: (bearer.tokens(), wiring.set_retention()))


@endpoint
def handler(request: Request) -> Response:
    identity = request.identity()
    contract, scope = request.path("contract"), request.path("scope")
    request.noted.update(contract=contract, scope=scope)
    if request.route.startswith("PUT "):
        told = wiring.set_retention()(identity, contract, scope, request.json())
    else:
        request.only_query()
        told = wiring.set_retention().read(identity, contract, scope)
    return Response(json.dumps(told, ensure_ascii=False, separators=(",", ":")))
