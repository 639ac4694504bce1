"""As sent: what a client of a flat shape left out of its item, so that it stays out when the event is read (S16).

It is stored in front of the event, `{"as":{shape, without?, partitions?},"event":…}`, and only where a reader of that
shape would get something else otherwise. Readers of other shapes, the archive and targets never see it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.canonical import canonical

PREFIX = '{"as":'
"""No other event begins so: theirs begin with `event`."""
_decoder = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class AsSent:
    """How an item came. No JSON of a client can be one, so what a client calls `as` is not taken for it."""

    shape: str
    without: tuple[str, ...] = ()
    """Fields that a reader of this shape is given, unless the item came without them."""
    partitions: tuple[str, ...] = ()
    """The names as the client spelled them, if Unicode knows another spelling that is stored."""
    tells: bool = False
    """Whether that it came in this shape says something by itself."""

    @property
    def stored(self) -> bytes:
        """What stands in front of the event; nothing if there is nothing to tell."""
        if not (self.without or self.partitions or self.tells):
            return b""
        told: dict[str, Any] = {"shape": self.shape}
        told |= {"without": list(self.without)} if self.without else {}
        told |= {"partitions": list(self.partitions)} if self.partitions else {}
        return b'"as":' + canonical(told) + b","


def split(body: bytes) -> tuple[Mapping[str, Any], str]:
    """How a stored event came, empty if that is not told; and the event as JSON without it."""
    text = body.decode()
    if not text.startswith(PREFIX):
        return {}, text
    told, end = _decoder.raw_decode(text, len(PREFIX))
    return told, "{" + text[end + 1 :]
