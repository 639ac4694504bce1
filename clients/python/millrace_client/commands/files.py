"""Files that commands are given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from millrace_client.errors import Usage


def json_lines(file: Path) -> list[dict[str, Any]]:
    """One JSON object a line; empty lines are left out."""
    try:
        # Not splitlines(): it also splits at characters that may stand inside a JSON string.
        lines = [json.loads(line) for line in content(file).decode().split("\n") if line.strip()]
    except (ValueError, RecursionError) as error:
        raise Usage(f"{file} must have one JSON object a line.") from error
    if not lines or not all(isinstance(line, dict) for line in lines):
        raise Usage(f"{file} must have one JSON object a line.")
    return lines


def json_object(file: Path) -> dict[str, Any]:
    try:
        held = json.loads(content(file))
    except (ValueError, RecursionError) as error:
        raise Usage(f"{file} is no JSON: {error}.") from error
    if not isinstance(held, dict):
        raise Usage(f"{file} must have one JSON object.")
    return held


def content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise Usage(f"{file} cannot be read: {error.strerror}.") from error
