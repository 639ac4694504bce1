"""Instants: ISO-8601 date-times as whole nanoseconds since 1970, so that two spellings of one moment are equal."""

from __future__ import annotations

import re
from datetime import date

_LOCAL = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
DATE_TIME = _LOCAL + r"(?:Z|[+-][0-9]{2}:[0-9]{2})"
"""As RFC 3339 has it: seconds are there, at most nine digits follow the point, the offset is never left out."""
UTC_DATE_TIME = _LOCAL + r"(?:Z|\+00:00)"

_SHAPE = re.compile(DATE_TIME)
_EPOCH = date(1970, 1, 1).toordinal()


def instant(text: str) -> int:
    """Nanoseconds since 1970 of a date-time in UTC (`Z` or `+00:00`); `ValueError` for any other text."""
    if not text.endswith(("Z", "+00:00")):
        raise ValueError("not a date-time in UTC")
    return moment(text)


def moment(text: str) -> int:
    """Nanoseconds since 1970 of a date-time with any offset; `ValueError` for another form, or a day that never was."""
    if _SHAPE.fullmatch(text) is None:
        raise ValueError("not a date-time")
    local, offset = (text[:-1], "") if text.endswith("Z") else (text[:-6], text[-6:])
    days = date(int(local[:4]), int(local[5:7]), int(local[8:10])).toordinal() - _EPOCH
    minutes = _minutes(local[11:16])
    seconds = int(local[17:19])
    if seconds > 59:
        raise ValueError("not a time of day; a leap second has no instant of its own")
    if offset:
        minutes -= _minutes(offset[1:]) * (1 if offset[0] == "+" else -1)
    return (days * 86_400 + minutes * 60 + seconds) * 1_000_000_000 + int(local[20:].ljust(9, "0"))


def utc_text(nanoseconds: int) -> str:
    """The date-time in UTC of an instant, with the digits it needs; `ValueError` outside the years 1 to 9999."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    days, second = divmod(seconds, 86_400)
    day = date.fromordinal(days + _EPOCH).isoformat() if 1 <= days + _EPOCH <= date.max.toordinal() else None
    if day is None:
        raise ValueError("not within the years 1 to 9999")
    digits = f".{fraction:09}".rstrip("0") if fraction else ""
    return f"{day}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}{digits}Z"


def _minutes(clock: str) -> int:
    hours, minutes = int(clock[:2]), int(clock[3:])
    if hours > 23 or minutes > 59:
        raise ValueError("not a time of day")
    return hours * 60 + minutes
