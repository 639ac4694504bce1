"""Domains of the catalog over HTTP: put versioned events, and read them by position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from millrace_client.sync.http import Client, Json


class Catalog(Client):
    """The catalog of a hub. A context manager, as `Client` is. To read needs the role operator."""

    def put(self, domain: str, event: Mapping[str, Any]) -> Json:
        """The event's place. Without an `idempotency_key` the hub makes one of what is sent."""
        return self._send("POST", f"/v1/catalog/{quote(domain, safe='')}/events", dict(event))

    def put_many(self, domain: str, events: Sequence[Mapping[str, Any]]) -> Sequence[Json]:
        """One result each, in order; a bad one does not stop the others. At most 100."""
        body = {"events": [dict(event) for event in events]}
        results: Sequence[Json] = self._send("POST", f"/v1/catalog/{quote(domain, safe='')}/events", body)["results"]
        return results

    def read(self, domain: str, after: int = 0, *, kind: str | None = None) -> Iterator[Json]:
        """Every event of the domain after a position, up to the head as it is then; `kind` chooses a type."""
        while True:
            query = {"after": after} | ({} if kind is None else {"type": kind})
            path = f"/v1/ledgers/catalog/{quote(domain, safe='')}/events"
            page = self._send("GET", f"{path}?{urlencode(query)}")
            yield from page["events"]
            if page["next_after"] >= page["head"] or page["next_after"] == after:
                return
            after = page["next_after"]
