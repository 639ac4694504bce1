"""What an answer of a target means (D8). Every receiver judges by this, so equal answers leave equal rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from millrace.delivery.domain.retry import retry_after_ms
from millrace.delivery.domain.states import Outcome, Status
from millrace.ledger.domain import strict_json
from millrace.ledger.domain.errors import BadRequest, TooLarge

MOST_ANSWER_BYTES = 4 * 1024 * 1024
MOST_ERROR_CHARACTERS = 300

STATUSES: Mapping[str, Status] = MappingProxyType(
    {
        "success": Status.SUCCESS,
        "accepted": Status.SUCCESS,
        "warning": Status.SUCCESS,
        "duplicate": Status.DUPLICATE,
        "pending": Status.PENDING,
        "queued": Status.PENDING,
        "rejected": Status.REJECTED,
        "terminal_failed": Status.TERMINAL_FAILED,
        "terminal-failed": Status.TERMINAL_FAILED,
    }
)
REASONS = ("error", "error_message", "reason", "message")
"""Where a target says why, the first that is there."""

MISSING = Outcome(Status.TRANSIENT, "missing from the answer")


@dataclass(frozen=True, slots=True)
class Response:
    """A target's answer as it came over the wire."""

    status: int
    body: bytes = b""
    retry_after: str | None = None


class Verdict(StrEnum):
    """What the dispatcher does with a batch."""

    RESULTS = "results"
    """Each event has an outcome."""
    PARTLY = "partly"
    """Some have an outcome; the batch was refused because of them, so the others go out again without them."""
    HELD = "held"
    """The request failed as a whole: every event shares `outcome`, and the target is left alone for now."""
    SPLIT = "split"
    """Refused without saying which: send it in halves. One alone has `outcome`."""
    GONE = "gone"
    """The target wants nothing any more: pause it."""
    UNREACHED = "unreached"
    """Nothing was sent, so no event has been attempted."""
    NOT_SENT = "not_sent"
    """Nothing was sent because the drain's own time or lease is over: no fault of the target's."""


@dataclass(frozen=True, slots=True)
class Answer:
    verdict: Verdict
    results: Mapping[str, Outcome] = field(default_factory=dict)
    outcome: Outcome = field(default=Outcome(Status.TRANSIENT))


def judge(response: Response, ids: Collection[str], now_ms: int) -> Answer:
    """An answer of the batch API."""
    if 200 <= response.status < 300:
        return _results(response, ids)
    if response.status == 400:
        return _bad_request(response, ids)
    return _refused(response, now_ms)


def judge_webhook(response: Response, ids: Collection[str], now_ms: int) -> Answer:
    """An answer to one event alone, of a target that knows nothing of batches: any 2xx is success."""
    if 200 <= response.status < 300:
        return Answer(Verdict.RESULTS, {id_: Outcome(Status.SUCCESS) for id_ in ids})
    if response.status == 400:
        return Answer(Verdict.SPLIT, outcome=Outcome(Status.REJECTED, _said(response, _parsed(response.body))))
    return _refused(response, now_ms)


def held(error: str, retry_after_ms: int | None = None) -> Answer:
    return Answer(Verdict.HELD, outcome=Outcome(Status.TRANSIENT, error, retry_after_ms))


def unreached(error: str) -> Answer:
    return Answer(Verdict.UNREACHED, outcome=Outcome(Status.TRANSIENT, error))


def not_sent() -> Answer:
    return Answer(Verdict.NOT_SENT)


def _refused(response: Response, now_ms: int) -> Answer:
    reason = f"answered {response.status}"
    if response.status == 413:
        return Answer(Verdict.SPLIT, outcome=Outcome(Status.TERMINAL_FAILED, f"{reason}: too large for the target"))
    if response.status == 410:
        return Answer(Verdict.GONE, outcome=Outcome(Status.TRANSIENT, f"{reason}: gone"))
    if 300 <= response.status < 400:
        reason += ": a redirect, which is not followed"
    else:
        reason = _said(response, _parsed(response.body))
    return held(reason, retry_after_ms(response.retry_after, now_ms))


def _results(response: Response, ids: Collection[str]) -> Answer:
    listed = _listed(_parsed(response.body), ("results",))
    if listed is None:
        return held(f"answered {response.status}, but not with results that can be read")
    outcomes = _by_id(listed, ids, default=None)
    return Answer(Verdict.RESULTS, {id_: outcomes.get(id_, MISSING) for id_ in ids})


def _bad_request(response: Response, ids: Collection[str]) -> Answer:
    body = _parsed(response.body)
    listed = _listed(body, ("results", "errors", "details"))
    outcomes = _by_id(listed or [], ids, default=Status.REJECTED)
    if outcomes.keys() >= set(ids):
        return Answer(Verdict.RESULTS, outcomes)
    if outcomes:
        return Answer(Verdict.PARTLY, outcomes)
    return Answer(Verdict.SPLIT, outcome=Outcome(Status.REJECTED, _said(response, body)))


def _parsed(body: bytes) -> Any:
    try:
        return strict_json.parse(body, MOST_ANSWER_BYTES)
    except (BadRequest, TooLarge):
        return None


def _listed(body: Any, names: Sequence[str]) -> list[Any] | None:
    """The first list under one of these names; `details` may hold it one level down, or as JSON in a text."""
    if not isinstance(body, dict):
        return None
    for name in names:
        found = body.get(name)
        if name == "details" and isinstance(found, str):
            found = _parsed(found.encode(errors="replace"))
        if isinstance(found, dict):
            found = _listed(found, names)
        if isinstance(found, list):
            return found
    return None


def _by_id(listed: Sequence[Any], ids: Collection[str], default: Status | None) -> dict[str, Outcome]:
    """Ids we did not send are left out. An id that is answered in two ways has no answer."""
    wanted = set(ids)
    outcomes: dict[str, Outcome] = {}
    for result in listed:
        id_ = result.get("event_id") if isinstance(result, dict) else None
        if not isinstance(id_, str) or id_ not in wanted:
            continue
        outcome = _outcome(result, default)
        if id_ in outcomes and outcomes[id_].status is not outcome.status:
            outcome = Outcome(Status.TRANSIENT, "answered in two ways")
        outcomes[id_] = outcome
    return outcomes


def _outcome(result: Mapping[str, Any], default: Status | None) -> Outcome:
    word = result.get("status")
    status = STATUSES.get(word) if isinstance(word, str) else None
    if status is None and word is None:
        status = default
    if status is None:
        return Outcome(Status.TRANSIENT, "answered with an unknown status")
    return Outcome(status, "" if status is Status.SUCCESS else _reason(result))


def _said(response: Response, body: Any) -> str:
    """The status of a request that was refused as a whole, with the target's reason where it gives one."""
    why = _reason(body) if isinstance(body, dict) else ""
    return f"answered {response.status}: {why}" if why else f"answered {response.status}"


def _reason(told: Mapping[str, Any]) -> str:
    return _text(next((told[name] for name in REASONS if told.get(name) is not None), None))


def _text(error: Any) -> str:
    """The target's own words, made safe to show."""
    if isinstance(error, dict):
        error = error.get("message", error.get("code"))
    if not isinstance(error, str):
        return ""
    shown = "".join(character if character.isprintable() else " " for character in error)
    return shown[:MOST_ERROR_CHARACTERS]
