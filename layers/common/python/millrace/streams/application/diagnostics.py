"""Diagnostics: break-glass grants and the raw values kept under them; the audit ledger records both (P4)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millrace.ledger.application.audit import AuditLedger
from millrace.ledger.domain.access import OPERATOR, Identity
from millrace.ledger.domain.errors import Forbidden
from millrace.ledger.domain.naming import name_problem
from millrace.streams.application.runtime_access import require_runtime
from millrace.streams.domain.envelope import check_name
from millrace.streams.domain.errors import Absent, GrantEnded
from millrace.streams.domain.grant import BreakGlassGrant, check_grant
from millrace.streams.ports import RawValues, Runtimes, Sealer


@dataclass(frozen=True, slots=True)
class Diagnostics:
    runtimes: Runtimes
    raw_values: RawValues
    sealer: Sealer
    audit: AuditLedger
    clock: Callable[[], int]
    new_id: Callable[[], str]
    new_salt: Callable[[], str]

    def grant(self, identity: Identity, runtime_id: str, sent: Any) -> dict[str, Any]:
        """Recorded before it takes effect."""
        _enter(identity, runtime_id)
        reason, ttl_s, streams, fields = check_grant(sent)
        now = self.clock()
        made = BreakGlassGrant(
            self.new_id(),
            runtime_id,
            identity.client_id,
            reason,
            streams,
            fields,
            now,
            now + ttl_s * 1000,
            self.new_salt(),
        )
        grant_json = made.as_json(now)
        self.audit.record(
            identity,
            "grant_made",
            runtime_id,
            grant_id=made.id,
            reason=reason,
            scope=grant_json["scope"],
            expires_ts_ms=made.expires_ms,
        )
        self.runtimes.put_grant(identity.tenant, made)
        return grant_json

    def grants(self, identity: Identity, runtime_id: str) -> dict[str, Any]:
        _enter(identity, runtime_id)
        now = self.clock()
        known = sorted(self.runtimes.grants(identity.tenant, runtime_id), key=lambda grant: grant.created_ms)
        return {"grants": [grant.as_json(now) for grant in known]}

    def revoke(self, identity: Identity, runtime_id: str, grant_id: str) -> dict[str, Any]:
        """Recorded first. The salt goes with it: what was kept cannot be opened any more."""
        _enter(identity, runtime_id)
        grant = self._find(identity, runtime_id, grant_id)
        now = self.clock()
        if grant.revoked_ms is None:
            self.audit.record(identity, "grant_revoked", runtime_id, grant_id=grant_id)
            grant = grant.revoked(now)
            self.runtimes.put_grant(identity.tenant, grant)
        return grant.as_json(now)

    def read(self, identity: Identity, runtime_id: str, grant_id: str, after: str, limit: int) -> dict[str, Any]:
        """Recorded before anything is shown. An operator who may not is recorded too."""
        identity.require(OPERATOR)
        try:
            require_runtime(identity, runtime_id)
        except Forbidden:
            if name_problem(runtime_id) is None and name_problem(grant_id) is None:
                self.audit.record(identity, "raw_read_refused", runtime_id, grant_id=grant_id)
            raise
        grant = self._find(identity, runtime_id, grant_id)
        if not grant.active(self.clock()):
            self.audit.record(identity, "raw_read_refused", runtime_id, grant_id=grant_id)
            raise GrantEnded("The grant has ended; its raw values are not readable any more.", grant_id=grant_id)
        entries, following = self.raw_values.page(grant_id, after, limit)
        event_ids = [entry.event_id for entry in entries]
        self.audit.record(identity, "raw_read", runtime_id, grant_id=grant_id, event_ids=event_ids)
        shown = []
        for entry in entries:
            content = json.loads(self.sealer.open(grant, entry.sealed))
            place = {"stream_id": entry.stream_id, "event_id": entry.event_id, "seq_no": entry.position}
            shown.append({**place, **content})
        now = self.clock()
        if not grant.active(now):
            raise GrantEnded("The grant has ended; its raw values are not readable any more.", grant_id=grant_id)
        return {"grant": grant.as_json(now), "entries": shown, "next_after": following}

    def _find(self, identity: Identity, runtime_id: str, grant_id: str) -> BreakGlassGrant:
        check_name("grant_id", grant_id)
        for grant in self.runtimes.grants(identity.tenant, runtime_id):
            if grant.id == grant_id:
                return grant
        raise Absent("There is no such grant for this runtime.", domain="grant", field="grant_id")


def _enter(identity: Identity, runtime_id: str) -> None:
    identity.require(OPERATOR)
    require_runtime(identity, runtime_id)
