"""The audit: what operators did, with its outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from millrace_client.operator.http import OperatorHttp


@dataclass(frozen=True, slots=True)
class AuditEntry:
    position: int
    ts_ms: int
    who: str
    action: str
    outcome: str | None
    """`begun`, `done`, `refused` or `failed`; None of entries that are made once."""
    fields: Mapping[str, Any]
    """All of it, as the hub told it."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        return cls(told["position"], told["ts_ms"], told["who"], told["action"], told.get("outcome"), told)


@dataclass(frozen=True, slots=True)
class OperatorAudit:
    http: OperatorHttp

    def newest(
        self, *, action: str | None = None, client: str | None = None, since_ms: int | None = None
    ) -> Iterator[AuditEntry]:
        """The newest first, back to the beginning; a page is asked for when it is needed."""
        before: int | None = None
        chosen = {"order": "newest", "action": action, "client": client, "since_ms": since_ms}
        while before != 0:
            page = self.http.get("/v1/audit", {**chosen, "before": before})
            yield from map(AuditEntry.of, page["events"])
            before = page["next_before"]

    def after(
        self, position: int = 0, *, action: str | None = None, client: str | None = None, since_ms: int | None = None
    ) -> Iterator[AuditEntry]:
        """In order, up to the end as it is now."""
        chosen = {"action": action, "client": client, "since_ms": since_ms}
        while True:
            page = self.http.get("/v1/audit", {**chosen, "after": position})
            yield from map(AuditEntry.of, page["events"])
            if page["next_after"] == position:
                return
            position = page["next_after"]
