"""The catalog over HTTP: how a recorded event and a rejected one are answered (C1, C2, C10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from millrace.lake.application.record_catalog import Recorded, Result
from millrace.ledger.domain.errors import TooLarge
from millrace.ledger.domain.metrics import Metric
from millrace.runtime import observe
from millrace.runtime.http import MAX_BODY_BYTES, Request, Response, to_json
from millrace.runtime.requests import events_of

if TYPE_CHECKING:
    from millrace.lake.application.record_catalog import RecordCatalog

ReadProtobuf = Callable[[bytes], dict[str, Any]]
PROTOBUF = ("application/x-protobuf", "application/protobuf")
REASONS = {400: "validation_failed", 409: "conflict", 413: "too_large"}


def record(record_catalog: RecordCatalog, read_protobuf: ReadProtobuf, request: Request) -> Response:
    identity, domain = request.identity(), request.path("domain")
    sent, is_batch = _sent(request, read_protobuf)
    results = record_catalog(identity, domain, sent, request.trace)
    recorded = [result for result in results if isinstance(result, Recorded)]
    deduped, rejected = sum(result.deduped for result in recorded), len(results) - len(recorded)
    fresh = len(recorded) - deduped
    request.noted.update(domain=domain, recorded=fresh, deduped=deduped, rejected=rejected)
    observe.count(
        {Metric.EVENTS_COMMITTED: fresh, Metric.EVENTS_DEDUPLICATED: deduped, Metric.EVENTS_REFUSED: rejected},
        contract="catalog",
    )
    if is_batch:
        answers = [_answer(result, event) for result, event in zip(results, sent, strict=True)]
        return Response(to_json({"results": answers}))
    if not isinstance(results[0], Recorded):
        raise results[0]
    return Response(to_json(_answer(results[0], sent[0])))


def _sent(request: Request, read_protobuf: ReadProtobuf) -> tuple[list[Any], bool]:
    """The events, and whether they came as a batch. A protobuf body is one event (C10)."""
    if request.header("content-type").partition(";")[0].strip().lower() not in PROTOBUF:
        return events_of(request.json())
    request.require_no_encoding()
    body = request.body()
    if len(body) > MAX_BODY_BYTES:
        rule = "The body is larger than the limit."
        raise TooLarge(rule, field="body", max_bytes=MAX_BODY_BYTES, actual_bytes=len(body))
    return [read_protobuf(body)], False


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
