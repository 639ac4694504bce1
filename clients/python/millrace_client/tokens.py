"""Tokens: the claims the hub reads, signed with a hub's own secret (HS256)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt

ISSUER = "millrace"
AUDIENCE = "millrace"
ROLES = ("producer", "consumer")
TWELVE_HOURS = 12 * 3600


@dataclass(frozen=True, slots=True)
class Grant:
    """Who may do what; a partition may end in `*`."""

    client_id: str
    projects: Sequence[str]
    partitions: Sequence[str] = ("*",)
    roles: Sequence[str] = ROLES
    tenant: str | None = None
    seconds: int = TWELVE_HOURS
    team: str | None = None
    """Whose journal its events go to; the hub's default is the tenant's."""

    def claims(self, now: int) -> dict[str, Any]:
        claims: dict[str, Any] = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "iat": now,
            "exp": now + self.seconds,
            "client_id": self.client_id,
            "projects": list(self.projects),
            "partitions": list(self.partitions),
            "roles": list(self.roles),
        }
        optional = {"tenant": self.tenant, "team_slug": self.team}
        return claims | {name: value for name, value in optional.items() if value is not None}


def sign(grant: Grant, secret: str, now: int | None = None) -> str:
    return sign_claims(grant.claims(int(time.time()) if now is None else now), secret)


def sign_claims(claims: Mapping[str, Any], secret: str) -> str:
    return jwt.encode(dict(claims), secret, algorithm="HS256")
