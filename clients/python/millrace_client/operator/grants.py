"""Break-glass grants: see sensitive values of a runtime for a while, for a reason that is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from millrace_client.operator.http import OperatorHttp
from millrace_client.sync.http import Json


@dataclass(frozen=True, slots=True)
class BreakGlass:
    http: OperatorHttp

    def make(
        self,
        runtime_id: str,
        reason: str,
        seconds: int,
        *,
        streams: Sequence[str] | None = None,
        fields: Sequence[str] | None = None,
    ) -> Json:
        """None: all streams, all fields. Sent once: a grant that was made twice would be two."""
        scope = {name: list(of) for name, of in (("streams", streams), ("fields", fields)) if of is not None}
        body: Json = {"reason": reason, "ttl_s": seconds} | ({"scope": scope} if scope else {})
        return self.http.send("POST", _path(runtime_id, "grants"), body, attempts=1)

    def list(self, runtime_id: str) -> Sequence[Json]:
        grants: Sequence[Json] = self.http.get(_path(runtime_id, "grants"))["grants"]
        return grants

    def revoke(self, runtime_id: str, grant_id: str) -> Json:
        return self.http.send("DELETE", f"{_path(runtime_id, 'grants')}?grant_id={quote(grant_id, safe='')}")

    def read(self, runtime_id: str, grant_id: str) -> Iterator[Json]:
        """The values that were kept since the grant was made; every call is in the audit."""
        after: str | None = None
        while True:
            page = self.http.get(_path(runtime_id, quote(grant_id, safe="")), {"after": after})
            yield from page["entries"]
            after = page["next_after"]
            if after is None:
                return


def _path(runtime_id: str, rest: str) -> str:
    return f"/v1/runtimes/{quote(runtime_id, safe='')}/diagnostics/{rest}"
