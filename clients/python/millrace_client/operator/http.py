"""The operator's doors over HTTP: what all their parts share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from millrace_client.sync.http import Client, Json


class OperatorHttp(Client):
    """Retries as `Client` does: a read again is the same read."""

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Json:
        """Parameters that are None are left out."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return self._send("GET", f"{path}?{urlencode(given)}" if given else path)

    def send(self, method: str, path: str, body: Json | None = None, attempts: int | None = None) -> Json:
        return self._send(method, path, body, attempts)


def ledger_path(contract: str, scope: str) -> str:
    """`scope` as the doors write it; of a stream `runtime_id:stream_id`."""
    return f"/v1/ledgers/{quote(contract, safe='')}/{quote(scope, safe='')}"
