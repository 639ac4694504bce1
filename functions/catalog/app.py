"""POST /v1/catalog/{domain}/events: record one event or many in a domain, each once under its idempotency key."""

from __future__ import annotations

import json
from typing import Any

from millrace.lake import wiring
from millrace.lake.application.record_catalog import Recorded, Result
from millrace.ledger.domain.metrics import Metric
from millrace.runtime import bearer, observe
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.requests import events_of
from millrace.runtime.snapstart import before_snapshot

before_snapshot(lambda: (bearer.tokens(), wiring.record_catalog()))
REASONS = {400: "validation_failed", 409: "conflict", 413: "too_large"}


@endpoint
def handler(request: Request) -> Response:
    identity = request.identity()
    sent, is_batch = events_of(request.json())
    results = wiring.record_catalog()(identity, request.path("domain"), sent)
    recorded = [result for result in results if isinstance(result, Recorded)]
    deduped, rejected = sum(result.deduped for result in recorded), len(results) - len(recorded)
    fresh = len(recorded) - deduped
    request.noted.update(domain=request.path("domain"), recorded=fresh, deduped=deduped, rejected=rejected)
    observe.count(
        {Metric.EVENTS_COMMITTED: fresh, Metric.EVENTS_DEDUPLICATED: deduped, Metric.EVENTS_REFUSED: rejected},
        contract="catalog",
    )
    if is_batch:
        answers = [_answer(result, event) for result, event in zip(results, sent, strict=True)]
        return _json({"results": answers})
    if not isinstance(results[0], Recorded):
        raise results[0]
    return _json(_answer(results[0], sent[0]))


def _answer(result: Result, event: Any) -> dict[str, Any]:
    if isinstance(result, Recorded):
        return {
            "idempotency_key": result.idempotency_key,
            "status": "committed",
            "sequence_position": result.sequence_position,
            "deduped": result.deduped,
            "committed_at": result.committed_at,
        }
    key = event.get("idempotency_key") if isinstance(event, dict) else None
    field = {"field": result.details.get("field", "event"), "message": result.message}
    return {
        **({"idempotency_key": key[:256]} if isinstance(key, str) else {}),
        "status": "rejected",
        "reason": REASONS[result.status],
        "errors": result.details.get("errors") or [field],
    }


def _json(body: Any) -> Response:
    return Response(json.dumps(body, ensure_ascii=False, separators=(",", ":")))
