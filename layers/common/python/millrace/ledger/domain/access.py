"""Access: what a verified token lets its bearer do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.errors import AuthFailed, Forbidden
from millrace.ledger.domain.naming import MAX_NAME_BYTES, is_text, require_names

PRODUCER, CONSUMER, OPERATOR = "producer", "consumer", "operator"
ROLES = frozenset({PRODUCER, CONSUMER, OPERATOR})


@dataclass(frozen=True, slots=True)
class Identity:
    """Partition patterns are exact, or a prefix ending in `*`; `*` alone is everything."""

    client_id: str
    tenant: str
    projects: frozenset[str]
    partitions: tuple[str, ...]
    roles: frozenset[str]
    team_slug: str
    expires_ms: int = 0

    @classmethod
    def of(cls, claims: Mapping[str, Any]) -> Identity:
        """Read a verified token's claims; raises `AuthFailed` naming the claim that is missing or malformed."""
        tenant = _name(claims, "tenant", "default")
        return cls(
            client_id=_name(claims, "client_id"),
            tenant=tenant,
            projects=frozenset(_names(claims, "projects")),
            partitions=tuple(_names(claims, "partitions")),
            roles=frozenset(_names(claims, "roles")) & ROLES,
            team_slug=_name(claims, "team_slug", tenant),
            expires_ms=int(claims.get("exp", 0)) * 1000,
        )

    @property
    def sees_everything(self) -> bool:
        return "*" in self.partitions

    def reaches(self, partition: str) -> bool:
        return any(
            partition.startswith(pattern[:-1]) if pattern.endswith("*") else partition == pattern
            for pattern in self.partitions
        )

    def covers(self, pattern: str) -> bool:
        """Whether every partition is reached that the pattern stands for; an exact name stands for itself."""
        return any(_covers(claim, pattern) for claim in self.partitions)

    def covers_project(self, pattern: str) -> bool:
        """As `covers`, of projects. Only here a claim that ends in `*` stands for all that start so."""
        return any(_covers(claim, pattern) for claim in self.projects)

    def require(self, role: str) -> None:
        if role not in self.roles:
            raise Forbidden(f"This needs the role {role}; the token does not carry it.", role=role)

    def may_name(self, **names: str) -> None:
        """Raises `BadRequest` if nothing new may have one of these names, each by its field, or the tenant's."""
        require_names(tenant=self.tenant, **names)

    def require_project(self, project: str) -> None:
        if project not in self.projects:
            raise Forbidden("The token does not name this project.", field="project")

    def require_reach(self, partition: str, what: str, field: str) -> None:
        """`what` names the partition in the refusal, `field` is where the request named it."""
        if not self.reaches(partition):
            raise Forbidden(f"The token does not reach {what}.", field=field)


def session_partition(session_id: str) -> str:
    return f"session:{session_id}"


def runtime_partition(runtime_id: str) -> str:
    return f"runtime:{runtime_id}"


def catalog_partition(domain: str) -> str:
    return f"catalog:{domain}"


def team_partition(team_slug: str) -> str:
    return f"team:{team_slug}"


PARTITION_OF: Mapping[str, Callable[[str], str]] = {
    "realtime": session_partition,
    "streams": runtime_partition,
    "catalog": catalog_partition,
    "delivery": team_partition,
}
"""By contract, the partition that stands for the ledgers of a name; a project has partitions of its own."""


def _covers(claim: str, pattern: str) -> bool:
    if claim.endswith("*"):
        return pattern.removesuffix("*").startswith(claim[:-1])
    return claim == pattern and not pattern.endswith("*")


def _name(claims: Mapping[str, Any], claim: str, default: str | None = None) -> str:
    value = claims.get(claim, default)
    if not isinstance(value, str) or not _is_name(value):
        raise AuthFailed(
            f"The token's claim {claim} must be a string of 1 to {MAX_NAME_BYTES} bytes of UTF-8.", claim=claim
        )
    return value


def _names(claims: Mapping[str, Any], claim: str) -> list[str]:
    value = claims.get(claim, [])
    if not isinstance(value, list) or not all(_is_name(name) for name in value):
        rule = f"The token's claim {claim} must be a list of strings of 1 to {MAX_NAME_BYTES} bytes of UTF-8."
        raise AuthFailed(rule, claim=claim)
    return value


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and is_text(value) and 0 < len(value.encode()) <= MAX_NAME_BYTES
