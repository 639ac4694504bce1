"""The result of checking a realtime event: a valid event, or what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Valid:
    """The event under its six canonical keys, its values as sent, and the instant of `ts` in nanoseconds, by which it
    is compared."""

    event: dict[str, Any]
    instant: int


@dataclass(frozen=True, slots=True)
class Invalid:
    """Every error as `{pointer, message}`: the JSON Pointer of the place as it was sent, and a text without values."""

    errors: list[dict[str, str]]
