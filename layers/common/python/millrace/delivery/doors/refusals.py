"""How the batch door words its refusals: as its clients read them, beside what all our errors have (D8)."""

from __future__ import annotations

from typing import Any

from millrace.ledger.domain.errors import MillraceError
from millrace.runtime.http import Response, retry_headers, to_json


def refuse_batch(error: MillraceError) -> Response:
    """
    `error` is there always. In a 400, `details` is a list that says of each event why it was refused, and is empty if
    no single event is to blame; what our other doors have under `details` is then under `problem`.
    """
    told: dict[str, Any] = {"error": error.message, "code": error.code, "message": error.message}
    rest = dict(error.details)
    if error.status != 400:
        return Response(to_json({**told, "details": rest}), error.status, headers=retry_headers(error))
    results = rest.pop("results", None)
    told |= {"details": [_reason(one) for one in results or ()], "problem": rest}
    return Response(to_json(told if results is None else {**told, "results": results}), error.status)


def _reason(result: dict[str, Any]) -> dict[str, Any]:
    return {**{name: result[name] for name in ("event_id", "index") if name in result}, "reason": result["error"]}
