"""How a hub stands: its overview, who is connected, and which subscriptions of a runtime met a gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from millrace_client.operator.http import OperatorHttp
from millrace_client.sync.http import Json


@dataclass(frozen=True, slots=True)
class Standing:
    http: OperatorHttp

    def overview(self) -> Json:
        return self.http.get("/v1/overview")

    def connections(self, project: str | None = None) -> Iterator[Json]:
        """Open connections with their subscriptions; a page is asked for when it is needed."""
        after: str | None = None
        while True:
            page = self.http.get("/v1/connections", {"project": project, "after": after})
            yield from page["connections"]
            after = page["next"]
            if after is None:
                return

    def degraded(self, runtime_id: str) -> Iterator[Json]:
        """Pages of a runtime's degraded subscriptions (`degraded`) and of its streams with a gap (`gaps`)."""
        after: str | None = None
        while True:
            page = self.http.get(f"/v1/runtimes/{quote(runtime_id, safe='')}/degraded", {"after": after})
            yield page
            after = page["next"]
            if after is None:
                return

    def negotiations(self, runtime_id: str) -> Iterator[Json]:
        """What each client of a runtime agreed on."""
        after: str | None = None
        while True:
            page = self.http.get(f"/v1/runtimes/{quote(runtime_id, safe='')}/negotiations", {"after": after})
            yield from page["negotiations"]
            after = page["next"]
            if after is None:
                return

    def negotiation(self, runtime_id: str) -> Json:
        """What the runtime and the token's own client agreed on."""
        return self.http.get(f"/v1/runtimes/{quote(runtime_id, safe='')}/negotiate")
