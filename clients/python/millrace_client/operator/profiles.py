"""Profiles of projects: which shape of events each takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from millrace_client.operator.http import OperatorHttp
from millrace_client.sync.http import Json


@dataclass(frozen=True, slots=True)
class ProjectProfiles:
    http: OperatorHttp

    def list(self) -> Iterator[Json]:
        """Those that operators set, then those of the deployment for projects where none did."""
        after: str | None = None
        deployed: dict[str, str] = {}
        seen: set[str] = set()
        while True:
            page = self.http.get("/v1/profiles", {"after": after})
            deployed |= page["deployment"]
            seen |= {one["project"] for one in page["profiles"]}
            yield from page["profiles"]
            after = page["next_after"]
            if after is None:
                break
        for project in sorted(deployed.keys() - seen):
            yield {"project": project, "profile": deployed[project], "set_by": "deployment"}

    def get(self, project: str) -> Json:
        return self.http.get(_path(project))

    def put(self, project: str, profile: str | None) -> Json:
        """None takes away what was set."""
        return self.http.send("PUT", _path(project), {"profile": profile})


def _path(project: str) -> str:
    return f"/v1/projects/{quote(project, safe='')}/profile"
