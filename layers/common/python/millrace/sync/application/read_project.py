"""Read a project: one page of its events for a bearer who may see them (S6, S7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.names import Ledger
from millrace.sync.application.sync import Sync
from millrace.sync.domain.read import HTTP_PAGE_BYTES, SyncPage, SyncRequest, check_sync


@dataclass(frozen=True, slots=True)
class ReadProject:
    sync: Sync

    def __call__(self, identity: Identity, project: str, body: Any) -> tuple[SyncRequest, SyncPage]:
        """What the body asks for, checked, and the page. Raises `Forbidden` or `BadRequest`."""
        asked = check_sync(body, identity, project)
        ledger = Ledger.of("sync", identity.tenant, project)
        page = self.sync(ledger, asked.partitions, asked.since, asked.limit, HTTP_PAGE_BYTES, asked.sync_to)
        return asked, page
