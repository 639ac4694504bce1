"""The way out to targets that may not take compressed bodies: one that answers 415 gets the same body plain."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field

from millrace.delivery.domain.outcomes import Response
from millrace.delivery.receivers.outbound import Outbound


@dataclass(frozen=True, slots=True)
class Forgiving(Outbound):
    """Some gateways damage compressed JSON before the target sees it. What is signed is the plain body either way."""

    plain: set[str] = field(default_factory=set)
    """Addresses that have answered so."""

    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        if headers.get("Content-Encoding") != "gzip":
            return Outbound.post(self, url, headers, body)
        if url not in self.plain:
            response = Outbound.post(self, url, headers, body)
            if response.status != 415:
                return response
            self.plain.add(url)
        bare = {name: value for name, value in headers.items() if name != "Content-Encoding"}
        return Outbound.post(self, url, bare, gzip.decompress(body))
