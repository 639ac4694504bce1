"""Stored fields: a row may have been written by a newer release, so what this one does not know is ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any


def known(cls: type[Any], stored: Any) -> dict[str, Any]:
    """Of what is stored, the fields that the dataclass has. What is no object at all is a row that nobody can read."""
    if not isinstance(stored, Mapping):
        raise TypeError(f"{cls.__name__} is stored as an object, not as {type(stored).__name__}")
    return {field.name: stored[field.name] for field in fields(cls) if field.name in stored}
