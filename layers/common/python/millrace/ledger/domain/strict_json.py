"""JSON at the door: what is ambiguous or cannot be kept exactly is refused, with a reason a caller can act on."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from millrace.ledger.domain.errors import BadRequest, TooLarge

MAX_DEPTH = 64
MAX_MARKS = 1_000_000
"""Commas and opening brackets, wherever they stand: a body that unpacks to millions of tiny values costs seconds."""

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


class _DuplicateKey(ValueError):
    pass


class _Number(ValueError):
    pass


def parse(body: bytes, max_bytes: int) -> Any:
    """Decode a request body, or raise `BadRequest` / `TooLarge`. The size is checked before anything is parsed."""
    _check_size(body, max_bytes)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refuse("The body is not valid UTF-8.", offset=error.start) from error
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except _DuplicateKey as error:
        # Which key is not told: inside a secret object a key is a part of the secret.
        raise _refuse("An object in the body has the same key twice.") from error
    except _Number as error:
        raise _refuse(str(error)) from error
    except RecursionError as error:
        raise _too_deep() from error
    except json.JSONDecodeError as error:
        raise _refuse(f"The body is not JSON: {error.msg}.", line=error.lineno, column=error.colno) from error
    except ValueError as error:
        raise _refuse("An integer in the body has more than 4300 digits.") from error
    if _deeper_than(value, MAX_DEPTH):
        raise _too_deep()
    if _SURROGATE_ESCAPE.search(body) and _has_lone_surrogate(value):
        raise _refuse("A string in the body has a lone surrogate, which no UTF-8 text can carry.")
    return value


def _check_size(body: bytes, max_bytes: int) -> None:
    if len(body) > max_bytes:
        raise TooLarge("The body is larger than the limit.", field="body", max_bytes=max_bytes, actual_bytes=len(body))
    if len(body) > MAX_MARKS and sum(map(body.count, (b",", b"[", b"{"))) > MAX_MARKS:
        raise TooLarge(f"The body has more than {MAX_MARKS} commas and brackets.", field="body", max_marks=MAX_MARKS)


def refuse_replacements(text: str) -> None:
    """A gateway that decodes a body puts U+FFFD where the bytes were not UTF-8: two ids could become one."""
    if "\ufffd" in text:
        raise _refuse("The body is not valid UTF-8 (or holds U+FFFD itself: send that as the escape \\ufffd).")


def _refuse(message: str, **details: Any) -> BadRequest:
    return BadRequest(message, field="body", **details)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        raise _DuplicateKey
    return built


def _constant(name: str) -> NoReturn:
    raise _Number(f"{name} is not a JSON number.")


def _float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _Number("A number in the body is too large for a double.")
    return value


def _too_deep() -> BadRequest:
    return _refuse(f"The body nests deeper than {MAX_DEPTH} levels.", max_depth=MAX_DEPTH)


def _deeper_than(value: Any, limit: int) -> bool:
    """Level by level: a container's members are one level below it."""
    level = [value] if type(value) in (dict, list) else []
    for _ in range(limit):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
    return bool(level)


def _has_lone_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
