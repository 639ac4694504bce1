"""The public names of the client: what is listed here stays, everything else may change.

Each name is imported when it is first used, so that nobody waits for what they do not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millrace.ledger.domain.errors import BadRequest, TooLarge
    from millrace.ledger.domain.errors import Conflict as EventConflict
    from millrace.version import VERSION
    from millrace_client.catalog import Catalog
    from millrace_client.errors import ClientError, NoHub, Refused, Unreachable, Usage
    from millrace_client.journal.capture import Report
    from millrace_client.journal.local_journal import LocalJournal
    from millrace_client.journal.ports import Taken
    from millrace_client.operator.hub import Operator
    from millrace_client.sessions import Realtime, SessionGapped
    from millrace_client.streams.markers import Marker, Markers, Position
    from millrace_client.streams.negotiation import Limits, Negotiated
    from millrace_client.streams.polling import Batch, Polled
    from millrace_client.streams.runtime import Runtime, Stream
    from millrace_client.streams.sdk_errors import (
        Conflict,
        CursorExpired,
        Emitted,
        NoAnswer,
        Progress,
        Rejected,
        SdkError,
        StreamDegraded,
        StreamGapped,
    )
    from millrace_client.sync.cursor_errors import CursorAhead, HistoryPruned
    from millrace_client.sync.http import Client
    from millrace_client.sync.live import Live
    from millrace_client.sync.protocol import Lost, RateLimited
    from millrace_client.sync.settings import Settings, Status
    from millrace_client.sync.store import CursorMoved, Store
    from millrace_client.sync.subscriber import Subscriber
    from millrace_client.sync.tailing import TailedEvent, TailGapped
    from millrace_client.tokens import Grant, sign

__all__ = [
    "VERSION",
    "BadRequest",
    "Batch",
    "Catalog",
    "Client",
    "ClientError",
    "Conflict",
    "CursorAhead",
    "CursorExpired",
    "CursorMoved",
    "Emitted",
    "EventConflict",
    "Grant",
    "HistoryPruned",
    "Limits",
    "Live",
    "LocalJournal",
    "Lost",
    "Marker",
    "Markers",
    "Negotiated",
    "NoAnswer",
    "NoHub",
    "Operator",
    "Polled",
    "Position",
    "Progress",
    "RateLimited",
    "Realtime",
    "Refused",
    "Rejected",
    "Report",
    "Runtime",
    "SdkError",
    "SessionGapped",
    "Settings",
    "Status",
    "Store",
    "Stream",
    "StreamDegraded",
    "StreamGapped",
    "Subscriber",
    "TailGapped",
    "TailedEvent",
    "Taken",
    "TooLarge",
    "Unreachable",
    "Usage",
    "sign",
]

_HOMES = {
    "millrace.ledger.domain.errors": ("BadRequest", "TooLarge"),
    "millrace.version": ("VERSION",),
    "millrace_client.catalog": ("Catalog",),
    "millrace_client.errors": ("ClientError", "NoHub", "Refused", "Unreachable", "Usage"),
    "millrace_client.journal.capture": ("Report",),
    "millrace_client.journal.local_journal": ("LocalJournal",),
    "millrace_client.journal.ports": ("Taken",),
    "millrace_client.operator.hub": ("Operator",),
    "millrace_client.sessions": ("Realtime", "SessionGapped"),
    "millrace_client.streams.markers": ("Marker", "Markers", "Position"),
    "millrace_client.streams.negotiation": ("Limits", "Negotiated"),
    "millrace_client.streams.polling": ("Batch", "Polled"),
    "millrace_client.streams.runtime": ("Runtime", "Stream"),
    "millrace_client.streams.sdk_errors": (
        "Conflict",
        "CursorExpired",
        "Emitted",
        "NoAnswer",
        "Progress",
        "Rejected",
        "SdkError",
        "StreamDegraded",
        "StreamGapped",
    ),
    "millrace_client.sync.cursor_errors": ("CursorAhead", "HistoryPruned"),
    "millrace_client.sync.http": ("Client",),
    "millrace_client.sync.live": ("Live",),
    "millrace_client.sync.protocol": ("Lost", "RateLimited"),
    "millrace_client.sync.settings": ("Settings", "Status"),
    "millrace_client.sync.store": ("CursorMoved", "Store"),
    "millrace_client.sync.subscriber": ("Subscriber",),
    "millrace_client.sync.tailing": ("TailGapped", "TailedEvent"),
    "millrace_client.tokens": ("Grant", "sign"),
}
_PLACES = {name: (home, name) for home, names in _HOMES.items() for name in names}
_PLACES["EventConflict"] = ("millrace.ledger.domain.errors", "Conflict")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home, attribute = _PLACES[name]
        value = globals()[name] = getattr(import_module(home), attribute)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
