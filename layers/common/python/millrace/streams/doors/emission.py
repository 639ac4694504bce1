"""Emitting over HTTP. It is apart from the other doors, so that they need not import what emitting needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millrace.ledger.domain.metrics import Metric
from millrace.runtime import observe
from millrace.runtime.http import Request, Response, to_json
from millrace.runtime.requests import events_of
from millrace.streams.application.emit import Emitted, Result
from millrace.streams.domain.errors import SdkError

if TYPE_CHECKING:
    from millrace.streams.application.emit import Emit


def emit(commit: Emit, request: Request) -> Response:
    identity = request.identity()
    sent, is_batch = events_of(request.json())
    results = commit(identity, request.path("runtime_id"), request.path("stream_id"), sent)
    refused = [result for result in results if isinstance(result, SdkError)]
    deduped = sum(isinstance(result, Emitted) and result.deduped for result in results)
    emitted = len(results) - len(refused) - deduped
    request.noted.update(emitted=emitted, deduped=deduped, refused=sorted({error.code for error in refused}))
    observe.count(
        {Metric.EVENTS_COMMITTED: emitted, Metric.EVENTS_DEDUPLICATED: deduped, Metric.EVENTS_REFUSED: len(refused)},
        contract="streams",
    )
    if is_batch:
        answers = [_answer(result, event) for result, event in zip(results, sent, strict=True)]
        return Response(to_json({"results": answers}))
    if refused:
        raise refused[0]
    return Response(to_json(_answer(results[0], sent[0])))


def _answer(result: Result, event: Any) -> dict[str, Any]:
    if isinstance(result, Emitted):
        return {"event_id": result.event_id, "seq_no": result.position, "deduped": result.deduped}
    known = event.get("event_id") if isinstance(event, dict) else None
    return {**({"event_id": known[:256]} if isinstance(known, str) else {}), **result.body()}
