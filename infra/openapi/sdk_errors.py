"""The errors of the streams contract's routes, described from the error classes themselves (T12)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from infra.openapi.parts import JSON, ref
from millrace.streams.domain import errors
from millrace.streams.domain.errors import SdkError

ALWAYS: tuple[type[SdkError], ...] = (
    errors.InvalidArgument,
    errors.AuthRequired,
    errors.AuthzDenied,
    errors.RateLimited,
    errors.InternalError,
    errors.StorageUnavailable,
)
"""What any of the routes may answer."""
RETRY_AFTER = {"retry-after": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}}


def refusals(*kinds: type[SdkError]) -> dict[str, Any]:
    """Status → the description of its errors: those any route has, and `kinds`."""
    by_status: dict[int, list[type[SdkError]]] = defaultdict(list)
    for kind in (*ALWAYS, *kinds):
        by_status[kind.status].append(kind)
    return {str(status): _refusal(by_status[status]) for status in sorted(by_status)}


def examples() -> dict[str, Any]:
    """One of each error, by its code."""
    return {kind.code: {"value": kind(_meaning(kind)).body()} for kind in errors.catalogue()}


def _refusal(kinds: list[type[SdkError]]) -> dict[str, Any]:
    described = " ".join(f"`{kind.code}`: {_meaning(kind)} {kind.advice}" for kind in kinds)
    shown = {kind.code: {"$ref": f"#/components/examples/{kind.code}"} for kind in kinds}
    waits = any(kind.retry_after_ms is not None for kind in kinds)
    return {
        "description": described,
        **({"headers": RETRY_AFTER} if waits else {}),
        "content": {JSON: {"schema": ref("SdkFailure"), "examples": shown}},
    }


def _meaning(kind: type[SdkError]) -> str:
    return " ".join((kind.__doc__ or "").split())
