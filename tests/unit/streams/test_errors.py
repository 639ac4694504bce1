"""T12: the contract's errors, and how the core's own are worded in it."""

from __future__ import annotations

import json

import pytest

from millrace.ledger.domain import errors
from millrace.ledger.domain.errors import MillraceError
from millrace.streams.domain.errors import SdkError, as_sdk_error, catalogue

STATUSES = {
    "SDK_VALIDATION_INVALID_ARGUMENT": 400,
    "SDK_VALIDATION_MAX_POLL_EVENTS_EXCEEDED": 400,
    "SDK_VALIDATION_MAX_EXTENSION_KEYS_EXCEEDED": 400,
    "SDK_VALIDATION_EVENT_TOO_LARGE": 413,
    "SDK_VALIDATION_BATCH_TOO_LARGE": 413,
    "SDK_RUNTIME_INVALID_CURSOR": 400,
    "SDK_RUNTIME_CURSOR_EXPIRED": 410,
    "SDK_RUNTIME_NOT_FOUND": 404,
    "SDK_RUNTIME_INVALID_STATE": 409,
    "SDK_RUNTIME_ALREADY_TERMINAL": 409,
    "SDK_RUNTIME_CONFLICT": 409,
    "SDK_RUNTIME_STREAM_DEGRADED": 409,
    "SDK_CAPABILITY_CONTRACT_INCOMPATIBLE": 409,
    "SDK_SECURITY_AUTH_REQUIRED": 401,
    "SDK_SECURITY_AUTHZ_DENIED": 403,
    "SDK_SECURITY_GRANT_ENDED": 403,
    "SDK_SECURITY_RATE_LIMITED": 429,
    "SDK_INTERNAL_UNAVAILABLE": 503,
    "SDK_INTERNAL_ERROR": 500,
}
RETRYABLE = {"SDK_SECURITY_RATE_LIMITED", "SDK_INTERNAL_UNAVAILABLE", "SDK_INTERNAL_ERROR"}


def test_the_catalogue_is_complete_and_each_code_has_its_status() -> None:
    """T12."""
    assert {kind.code: kind.status for kind in catalogue()} == STATUSES


@pytest.mark.parametrize("kind", catalogue(), ids=lambda kind: kind.code)
def test_an_error_says_all_that_the_contract_asks_for(kind: type[SdkError]) -> None:
    """T12: the category is the code's infix."""
    body = kind("What happened.", field="x").body()
    assert json.loads(json.dumps(body)) == {
        "machine_code": kind.code,
        "category": kind.code.split("_")[1].title(),
        "retryable": kind.code in RETRYABLE,
        "is_user_actionable": kind.code not in RETRYABLE,
        "message": "What happened.",
        "details": {"field": "x"},
    }
    assert kind.__doc__
    assert kind.advice
    assert (kind.retry_after_ms is not None) == (kind.status in (429, 503))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.BadRequest("m", field="f"), "SDK_VALIDATION_INVALID_ARGUMENT"),
        (errors.TooLarge("m", max_bytes=1), "SDK_VALIDATION_BATCH_TOO_LARGE"),
        (errors.AuthFailed("m", claim="exp"), "SDK_SECURITY_AUTH_REQUIRED"),
        (errors.Forbidden("m", role="operator"), "SDK_SECURITY_AUTHZ_DENIED"),
        (errors.NotFound("m"), "SDK_RUNTIME_NOT_FOUND"),
        (errors.Throttled("m", cause="c"), "SDK_SECURITY_RATE_LIMITED"),
        (errors.Contention("m"), "SDK_INTERNAL_UNAVAILABLE"),
        (errors.Unavailable("m", cause="c"), "SDK_INTERNAL_UNAVAILABLE"),
        (MillraceError("m"), "SDK_INTERNAL_ERROR"),
    ],
)
def test_the_cores_errors_are_worded_as_the_contracts(error: MillraceError, code: str) -> None:
    """T12: text and details stay, and so does the status."""
    said = as_sdk_error(error)
    assert (said.code, said.message, said.details) == (code, error.message, error.details)
    assert said.status == error.status
    assert said.retry_after_ms == error.retry_after_ms


def test_the_contracts_own_errors_stay_as_they_are() -> None:
    """T12."""
    for kind in catalogue():
        error = kind("m")
        assert as_sdk_error(error) is error
