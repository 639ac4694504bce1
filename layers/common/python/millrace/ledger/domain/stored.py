"""Stored fields: a row may have been written by a newer release, so what this one does not know is ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any


def known(cls: type[Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Of what is stored, the fields that the dataclass has. Raises `TypeError` if it has no fields at all: an older
    release wrote fewer, and none wrote anything else."""
    if not isinstance(stored, Mapping):
        raise TypeError(f"A {cls.__name__} is stored by its fields.")
    return {field.name: stored[field.name] for field in fields(cls) if field.name in stored}
