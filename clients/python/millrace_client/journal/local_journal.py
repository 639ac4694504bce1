"""Capturing from Python: events are on the disk when `capture` returns, whether or not they can be delivered."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from millrace.delivery.domain.events import captured
from millrace_client.home import default_home
from millrace_client.journal.capture import Capture, Report
from millrace_client.journal.config import load_to_capture
from millrace_client.journal.identity import bearer
from millrace_client.journal.journals import Journals
from millrace_client.journal.session import now_ms
from millrace_client.journal.sqlite.journal import SqliteJournal

Event = Mapping[str, Any] | str | bytes


class LocalJournal:
    """
    Our journal in a home folder. Text and bytes are kept exactly as they are; use it from one thread.

    `token`, else `MILLRACE_TOKEN`, says who captures. It is only read: one that has expired, or none, stops nobody.
    """

    def __init__(self, home: Path | None = None, *, token: str | None = None) -> None:
        config, _ = load_to_capture(home or default_home())
        producer = bearer(token or os.environ.get("MILLRACE_TOKEN"), config.team_slug)
        self._database = Journals(config.home).open(producer)
        self._capture = Capture(SqliteJournal(self._database), config.families, now_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.connection.close()

    def capture(
        self, events: Event | Iterable[Event], *, coalesce_key: str | None = None, opt_out: bool = False
    ) -> Report:
        """All of them or none. Raises `BadRequest`, `TooLarge` or `EventConflict`."""
        given = [events] if isinstance(events, Mapping | str | bytes) else list(events)
        return self._capture([captured(_raw(event), coalesce_key) for event in given], opt_out=opt_out)


def _raw(event: Event) -> bytes:
    if isinstance(event, bytes):
        return event
    return (event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)).encode("utf-8", "surrogatepass")
