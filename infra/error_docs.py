"""Makes docs/errors.md, the catalogue of the streams contract's errors, from the error classes themselves.

`make generated`. A test fails when it is stale.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from millrace.streams.domain.errors import SdkError, catalogue

PAGE = Path(__file__).parents[1] / "docs/errors.md"

HEAD = """# Errors of the streams contract

Generated from `layers/common/python/millrace/streams/domain/errors.py` by `make generated`; do not edit.

Every error of the streams, marker and diagnostics routes is one object (rule [T12](contracts.md#t12)):

    {"machine_code": …, "category": …, "retryable": …, "is_user_actionable": …, "message": …, "details": {…}}

Program against `machine_code` and `details`; `message` is for people and may change. `retryable` means that the very
same request may succeed later, and is safe to send again. No error holds a payload's values. On the WebSocket the
object is the `details` of an `error` message.
"""


def page() -> str:
    return "\n".join([HEAD, *_sections()])


def _sections() -> Iterator[str]:
    category = ""
    for kind in catalogue():
        if kind.category() != category:
            category = kind.category()
            yield f"## {category}\n"
        yield _section(kind)


def _section(kind: type[SdkError]) -> str:
    flags = [f"HTTP {kind.status}"]
    flags += ["retryable"] if kind.retryable else []
    flags += [] if kind.is_user_actionable else ["not the caller's fault"]
    happened = " ".join((kind.__doc__ or "").split())
    return f"### {kind.code}\n\n{', '.join(flags)}. {happened}\n\n*What to do:* {kind.advice}\n"


def files() -> dict[Path, str]:
    return {PAGE: page()}
