"""Who the token says we are, and whether a Teamspace's gates are open (D2). The hub verifies; we only read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from millrace.delivery.domain.authority import ENABLE_VARIABLE, Bearer, ResolvedSyncTarget, sync_enabled
from millrace.delivery.domain.targets import Blocked


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """`private_teamspace`: the token itself names a team."""

    claims: Bearer
    private_teamspace: bool = False
    expires_s: float | None = None


def read_token(token: str | None, configured_team: str | None) -> TokenClaims | None:
    """None without a token, or with something that is none."""
    try:
        payload: Mapping[str, Any] = jwt.decode(token or "", options={"verify_signature": False})
    except jwt.InvalidTokenError:
        return None
    team = _text(payload, "team_slug")
    expires = payload.get("exp")
    return TokenClaims(
        Bearer(_text(payload, "client_id"), team or _text(payload, "tenant") or configured_team),
        team is not None,
        float(expires) if isinstance(expires, int | float) else None,
    )


def bearer(token: str | None, configured_team: str | None) -> Bearer:
    """Who captures and sends: what the token says, else what is configured, else nobody."""
    claims = read_token(token, configured_team)
    return claims.claims if claims else Bearer(None, configured_team)


def teamspace_gate(
    target: ResolvedSyncTarget, token: TokenClaims | None, environment: Mapping[str, str], now_s: float
) -> tuple[Blocked, str] | None:
    """The first closed gate, or None."""
    if not sync_enabled(environment):
        return Blocked.SAAS_DISABLED, f"{ENABLE_VARIABLE} is off"
    if target.resolved_server_url is None:
        return Blocked.SAAS_DISABLED, "no server is configured ([sync].server_url)"
    if token is None:
        return Blocked.MISSING_AUTH, "there is no token: pass --token, or set MILLRACE_TOKEN"
    if token.expires_s is not None and token.expires_s <= now_s:
        return Blocked.MISSING_AUTH, "the token has expired"
    if target.team_slug is None:
        return Blocked.MISSING_TEAM, "no team is known: neither the token nor [sync].team_slug names one"
    if not token.private_teamspace:
        return Blocked.PRIVATE_TEAMSPACE_GATE, "the token has no team_slug, so it opens no private Teamspace"
    return None


def _text(payload: Mapping[str, Any], name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) and value else None
