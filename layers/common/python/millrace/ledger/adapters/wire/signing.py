"""Signature Version 4: signs a request to AWS. The key of a day is derived once."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from millrace.ledger.adapters.wire.credentials import Credentials

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = frozenset({"connection", "user-agent", "x-amzn-trace-id"})
"""Headers that whoever passes a request on may change."""


@dataclass(slots=True)
class Signer:
    service: str
    region: str
    _key: tuple[str, str, bytes] = field(default=("", "", b""))
    """The secret and the day that the key was derived from, and the key."""

    def sign(
        self,
        credentials: Credentials,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        now: float,
    ) -> dict[str, str]:
        """The headers that prove who asks. Names of headers are in lower case, `host` is one of them, and `path` is
        as it is sent, without a query."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        proof = {"x-amz-date": stamp}
        if credentials.token:
            proof["x-amz-security-token"] = credentials.token
        signed = sorted(item for item in {**headers, **proof}.items() if item[0] not in UNSIGNED)
        names = ";".join([name for name, _ in signed])
        lines = "".join([f"{name}:{' '.join(value.split())}\n" for name, value in signed])
        digest = hashlib.sha256(body).hexdigest()
        canonical = f"{method}\n{quote(path, safe='/~')}\n\n{lines}\n{names}\n{digest}"
        scope = f"{stamp[:8]}/{self.region}/{self.service}/aws4_request"
        text = f"{ALGORITHM}\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._key_of(credentials.secret_key, stamp[:8]), text.encode(), "sha256").hex()
        proof["authorization"] = (
            f"{ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        return proof

    def _key_of(self, secret: str, day: str) -> bytes:
        known_secret, known_day, key = self._key
        if known_day == day and known_secret == secret:
            return key
        key = f"AWS4{secret}".encode()
        for part in (day, self.region, self.service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        self._key = secret, day, key
        return key
