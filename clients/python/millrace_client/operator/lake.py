"""Tables, quarantine and registry as an operator sees them through the hub, without credentials of its storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from millrace_client.operator.http import OperatorHttp
from millrace_client.sync.http import Json


@dataclass(frozen=True, slots=True)
class LakeDoors:
    http: OperatorHttp

    def tables(self) -> Json:
        """The last runs of compaction, the tables they made, and what waits."""
        return self.http.get("/v1/tables")

    def registry(self) -> Json:
        return self.http.get("/v1/registry")

    def put_registry(self, registry: Mapping[str, Any]) -> Json:
        return self.http.send("PUT", "/v1/registry", dict(registry))


@dataclass(frozen=True, slots=True)
class QuarantineDoors:
    http: OperatorHttp

    def list(self, reason: str | None = None, *, every: bool = False) -> Iterator[Json]:
        """What waits, and with `every` also what was driven again; a page is asked for when it is needed."""
        after: str | None = None
        while True:
            query = {"reason": reason, "all": "true" if every else None, "after": after}
            page = self.http.get("/v1/quarantine", query)
            yield from page["entries"]
            after = page["next"]
            if after is None:
                return

    def get(self, id_: str) -> Json:
        """One entry, with its line."""
        return self.http.get(f"/v1/quarantine/{quote(id_, safe='')}")

    def redrive(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The archive object that each of them went into."""
        done: Mapping[str, str] = self.http.send("POST", "/v1/quarantine/redrive", {"ids": list(ids)})["redriven"]
        return done

    def redrive_all(self, reason: str) -> Iterator[Mapping[str, str]]:
        """All that wait with this reason, step by step."""
        body: Json = {"reason": reason}
        while True:
            step = self.http.send("POST", "/v1/quarantine/redrive", body)
            yield step["redriven"]
            if step["next"] is None:
                return
            body["after"] = step["next"]

    def repair(self, id_: str, lines: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
        """Put these lines into the archive in place of the entry."""
        body = {"lines": [dict(line) for line in lines]}
        done: Mapping[str, str] = self.http.send("POST", f"/v1/quarantine/{quote(id_, safe='')}/repair", body)[
            "redriven"
        ]
        return done
