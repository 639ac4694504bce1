"""Kinds: how an error names what a caller sent, by its class and never by its value."""

from __future__ import annotations

from typing import Any

Errors = list[dict[str, str]]
"""What is wrong with one event: a field and a rule each."""


def kind_of(value: Any) -> str:
    """The value class to name in an error; never the value."""
    if value is None:
        return "null or missing"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    return {"str": "a string", "list": "a list", "dict": "an object"}.get(type(value).__name__, "something else")
