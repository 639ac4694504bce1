"""Rows that cannot be read: one is passed over and told, and its neighbours are read."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from millrace.ledger.domain.errors import UnreadableRow

T = TypeVar("T")

Tell = Callable[[UnreadableRow], None]
TORN = (KeyError, ValueError, TypeError, AttributeError, IndexError, zlib.error)
"""What comes of a row with a part missing, or of another kind."""


@contextmanager
def reading(what: str, key: str) -> Iterator[None]:
    """Around what makes a value of a row. Raises `UnreadableRow`."""
    try:
        yield
    except TORN as error:
        raise UnreadableRow(what, key, type(error).__name__) from error


def readable(rows: Iterable[Any], read: Callable[[Any], T], tell: Tell) -> Iterator[T]:
    """Those that can be read."""
    for row in rows:
        try:
            value = read(row)
        except UnreadableRow as unreadable:
            tell(unreadable)
            continue
        yield value
