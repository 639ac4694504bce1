"""Break-glass grants (P4): who may see which raw sensitive values, why, and until when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from millrace.ledger.domain.stored import known
from millrace.streams.domain.envelope import check_text, invalid
from millrace.streams.domain.privacy import normal_name

MIN_TTL_S, MAX_TTL_S = 60, 86_400
MAX_SCOPE = 32
MAX_REASON_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class BreakGlassGrant:
    """`streams` or `fields` None: all of them. The salt makes its key; without it nothing kept can be opened."""

    id: str
    runtime_id: str
    who: str
    reason: str
    streams: tuple[str, ...] | None
    fields: tuple[str, ...] | None
    created_ms: int
    expires_ms: int
    salt: str
    revoked_ms: int | None = None

    def active(self, now_ms: int) -> bool:
        return self.revoked_ms is None and now_ms < self.expires_ms

    def revoked(self, now_ms: int) -> BreakGlassGrant:
        return replace(self, revoked_ms=now_ms, salt="")

    def covered(self, stream_id: str, raw: Sequence[tuple[str, str, Any]]) -> list[tuple[str, Any]]:
        """The paths and values of its scope among an event's sensitive ones."""
        if self.streams is not None and stream_id not in self.streams:
            return []
        names = None if self.fields is None else {normal_name(name) for name in self.fields}
        return [(path, value) for path, name, value in raw if names is None or name in names]

    def as_json(self, now_ms: int) -> dict[str, Any]:
        """As its makers see it: everything but the salt."""
        status = "revoked" if self.revoked_ms is not None else "active" if self.active(now_ms) else "expired"
        return {
            "grant_id": self.id,
            "runtime_id": self.runtime_id,
            "who": self.who,
            "reason": self.reason,
            "scope": {"streams": _listed(self.streams), "fields": _listed(self.fields)},
            "created_ts_ms": self.created_ms,
            "expires_ts_ms": self.expires_ms,
            "status": status,
        }

    def stored(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> BreakGlassGrant:
        tuples = {name: None if stored[name] is None else tuple(stored[name]) for name in ("streams", "fields")}
        return cls(**{**known(cls, stored), **tuples})


def check_grant(sent: Any) -> tuple[str, int, tuple[str, ...] | None, tuple[str, ...] | None]:
    """Reason, seconds to live, streams and fields of a request for a grant."""
    if not isinstance(sent, dict):
        raise invalid("body", "The body must be an object with reason and ttl_s.", sent)
    unknown = next((name for name in sent if name not in ("reason", "ttl_s", "scope")), None)
    if unknown is not None:
        raise invalid(unknown[:64], "No such field; known: reason, ttl_s, scope.", sent[unknown])
    reason = check_text("reason", sent.get("reason"), MAX_REASON_BYTES)
    ttl = sent.get("ttl_s")
    if isinstance(ttl, bool) or not isinstance(ttl, int) or not MIN_TTL_S <= ttl <= MAX_TTL_S:
        raise invalid("ttl_s", f"ttl_s must be an integer from {MIN_TTL_S} to {MAX_TTL_S}.", ttl)
    scope = {} if sent.get("scope") is None else sent["scope"]
    if not isinstance(scope, dict) or set(scope) - {"streams", "fields"}:
        raise invalid("scope", "scope must be an object with streams and fields, both optional.", scope)
    return reason, ttl, _names(scope, "streams"), _names(scope, "fields")


def _names(scope: Mapping[str, Any], field: str) -> tuple[str, ...] | None:
    value = scope.get(field)
    if value is None:
        return None
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_SCOPE:
        raise invalid(f"scope.{field}", f"scope.{field} must be a list of 1 to {MAX_SCOPE} names.", value)
    return tuple(check_text(f"scope.{field}", name) for name in value)


def _listed(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)
