"""Set profile: an operator says which shape of events a project takes, and reads what is set (S3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.access import OPERATOR, Identity
from millrace.ledger.domain.errors import BadRequest, Forbidden
from millrace.ledger.domain.kinds import kind_of
from millrace.sync.domain.submit import OPEN, PROFILES
from millrace.sync.ports import Profiles

BY_OPERATOR, BY_DEPLOYMENT, BY_DEFAULT = "operator", "deployment", "default"


@dataclass(frozen=True, slots=True)
class SetProfile:
    profiles: Profiles
    deployed: Mapping[str, str]
    """`tenant/project` → profile, by a parameter of the deployment."""

    def __call__(self, identity: Identity, project: str, body: Any) -> dict[str, Any]:
        _require(identity, project)
        if not identity.sees_everything:
            raise Forbidden("A profile holds for the whole project; the token does not reach all of it.")
        identity.may_name(project=project)
        profile = _check(body)
        self.profiles.put(identity.tenant, project, profile)
        return self._told(identity.tenant, project, profile)

    def read(self, identity: Identity, project: str) -> dict[str, Any]:
        _require(identity, project)
        return self._told(identity.tenant, project, self.profiles.get(identity.tenant, project))

    def list(self, identity: Identity, after: str, limit: int) -> dict[str, Any]:
        """Of the projects that the token names, those whose profile was set, here or by the deployment. A page may be
        short, and only the first one has those of the deployment."""
        identity.require(OPERATOR)
        page = self.profiles.page(identity.tenant, after, limit)
        named = {project: self.deployed.get(f"{identity.tenant}/{project}") for project in sorted(identity.projects)}
        return {
            "profiles": [
                {"project": project, "profile": profile, "set_by": BY_OPERATOR}
                for project, profile in page.profiles.items()
                if project in identity.projects
            ],
            "deployment": {} if after else {project: profile for project, profile in named.items() if profile},
            "next_after": page.after,
        }

    def _told(self, tenant: str, project: str, given: str | None) -> dict[str, Any]:
        deployed = self.deployed.get(f"{tenant}/{project}")
        by = BY_OPERATOR if given else BY_DEPLOYMENT if deployed else BY_DEFAULT
        return {"project": project, "profile": given or deployed or OPEN, "set_by": by}


def _require(identity: Identity, project: str) -> None:
    identity.require(OPERATOR)
    identity.require_project(project)


def _check(body: Any) -> str | None:
    """Null takes away what was set."""
    if not isinstance(body, dict) or body.keys() != {"profile"}:
        raise BadRequest("The body must be an object with the key profile and no other.", field="body")
    profile = body["profile"]
    if profile is not None and (not isinstance(profile, str) or profile not in PROFILES):
        known = ", ".join(PROFILES)
        raise BadRequest(f"profile is one of {known}, or null.", field="profile", value_class=kind_of(profile))
    return profile
