"""Canonical JSON: RFC 8785, except that integers stay exact at any size. Digests and stored bodies are made of it."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

DIGEST_VERSION = b"\x01"
DIGEST_BYTES = 17

_encode_plain = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def canonical(value: Any) -> bytes:
    """The one UTF-8 text of a JSON value: keys sorted by UTF-16 code units, numbers as ECMAScript writes them."""
    if _is_plain(value):
        return _encode_plain(value).encode("utf-8")
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts).encode("utf-8")


def digest(content: bytes) -> bytes:
    """A versioned fingerprint of canonical content; equal digests mean the same event was sent again."""
    return DIGEST_VERSION + hashlib.sha256(content).digest()[: DIGEST_BYTES - 1]


def _is_plain(value: Any) -> bool:
    """True when the standard encoder already writes the canonical text: no floats, no key outside the basic plane."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is dict:
        for key, member in value.items():
            if not (key.isascii() or max(key) < "\ud800") or not _is_plain(member):
                return False
        return True
    if kind is list or kind is tuple:
        return all(_is_plain(member) for member in value)
    return False


def _write(value: Any, out: list[str]) -> None:
    if isinstance(value, dict):
        out.append("{")
        for index, key in enumerate(sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))):
            out.append("," if index else "")
            out.append(_encode_plain(key))
            out.append(":")
            _write(value[key], out)
        out.append("}")
    elif isinstance(value, (list, tuple)):
        out.append("[")
        for index, member in enumerate(value):
            out.append("," if index else "")
            _write(member, out)
        out.append("]")
    elif isinstance(value, float):
        out.append(_number(value))
    else:
        out.append(_encode_plain(value))


def _number(value: float) -> str:
    """ECMAScript Number::toString. `repr` gives the same shortest digits; only their layout differs."""
    if not math.isfinite(value):
        raise ValueError("NaN and infinities have no JSON form")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    # the value is 0.DIGITS × 10^point
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len((whole + fraction).lstrip("0")))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = point - 1
    tail = f"e{'+' if power > 0 else '-'}{abs(power)}"
    return sign + (digits if count == 1 else f"{digits[0]}.{digits[1:]}") + tail


def escaped_bytes(text: bytes) -> int:
    """What a JSON text takes as a string inside a function's answer, which is JSON itself and has a limit of 6 MB."""
    return len(text) + text.count(b'"') + text.count(b"\\")
