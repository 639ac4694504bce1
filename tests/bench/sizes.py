"""DynamoDB's size rules, computed here so that the emulator's units need not be believed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WRITE_UNIT = 1024
READ_UNIT = 4096


def item_size(item: Mapping[str, Any]) -> int:
    """Names and values in UTF-8, bytes as they are, numbers by pairs of significant digits."""
    return sum(len(name.encode()) + value_size(value) for name, value in item.items())


def value_size(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "B":
        return len(content)
    if kind == "N":
        return _number_size(int(content))
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + value_size(member) for name, member in content.items())
    if kind == "L":
        return 3 + sum(1 + value_size(member) for member in content)
    raise ValueError(f"the bench stores no attribute of type {kind}")


def write_units(size: int) -> int:
    return max(1, -(-size // WRITE_UNIT))


def read_units(size: int) -> int:
    """Of a strongly consistent read."""
    return max(1, -(-size // READ_UNIT))


def _number_size(number: int) -> int:
    """One byte, and one per pair of digits; pairs are counted from the units on, outer pairs of zeros are free."""
    pairs: list[int] = []
    while number:
        number, pair = divmod(number, 100)
        pairs.append(pair)
    while pairs and pairs[0] == 0:
        pairs.pop(0)
    return 1 + len(pairs)
