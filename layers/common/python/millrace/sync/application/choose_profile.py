"""Choose profile: which shape of events a project takes (S3), as its operator set it within the last seconds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from millrace.ledger.domain.errors import Unavailable
from millrace.sync.domain.submit import OPEN, PROFILES
from millrace.sync.ports import Profiles

FRESH_MS = 5_000
"""So long after an operator has set a profile, submits may still be checked against the one before."""
MOST_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class ChooseProfile:
    profiles: Profiles
    deployed: Mapping[str, str]
    """`tenant/project` → profile, by a parameter of the deployment: where no operator has set one."""
    clock: Callable[[], int]
    kept: OrderedDict[tuple[str, str], tuple[int, str]] = field(default_factory=OrderedDict)

    def __call__(self, tenant: str, project: str) -> str:
        """Raises `Unavailable` if it is a profile that this release does not know: nothing could be checked."""
        now = self.clock()
        until, profile = self.kept.get((tenant, project), (0, ""))
        if not now < until <= now + FRESH_MS:
            profile = self._read(tenant, project)
            self.kept[tenant, project] = now + FRESH_MS, profile
            while len(self.kept) > MOST_KEPT:
                self.kept.popitem(last=False)
        return profile

    def _read(self, tenant: str, project: str) -> str:
        profile = self.profiles.get(tenant, project) or self.deployed.get(f"{tenant}/{project}", OPEN)
        if profile not in PROFILES:
            raise Unavailable("This release of the hub does not know the project's profile.", field="profile")
        return profile
