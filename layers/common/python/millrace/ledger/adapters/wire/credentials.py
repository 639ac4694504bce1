"""Credentials of a function: from its environment, or, where Lambda restores snapshots, from its local endpoint."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from millrace.ledger.adapters.wire.connections import AwsEndpoint, KeptConnections, WireLimits, request_bytes
from millrace.ledger.adapters.wire.failures import AwsUnanswered

REFRESH_SECONDS, MUST_REFRESH_SECONDS = 15 * 60, 10 * 60
"""So long before they end, credentials are asked for again; and so long before, no call goes out with the old ones."""
FETCH_TRIES = 3
FULL_URI = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
NEAR = frozenset({"localhost", "127.0.0.1", "::1", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"})
"""Only from these hosts are credentials taken without encryption."""


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)


def environment_credentials() -> Credentials | None:
    key, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    if not key or not secret:
        return None
    return Credentials(key, secret, os.environ.get("AWS_SESSION_TOKEN", ""))


@dataclass(slots=True)
class EndpointCredentials:
    """Credentials that Lambda's endpoint hands out for some hours; one thread refreshes them for all."""

    clock: Callable[[], float] = time.time
    _known: tuple[Credentials, float] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self) -> Credentials:
        """Raises `AwsUnanswered` if there are none that still hold."""
        known = self._known
        if known is not None and self.clock() < known[1] - REFRESH_SECONDS:
            return known[0]
        with self._lock:
            known = self._known
            if known is None or self.clock() >= known[1] - REFRESH_SECONDS:
                known = self._known = self._fresh(known)
        return known[0]

    def _fresh(self, known: tuple[Credentials, float] | None) -> tuple[Credentials, float]:
        try:
            return _fetch()
        except AwsUnanswered:
            if known is None or self.clock() >= known[1] - MUST_REFRESH_SECONDS:
                raise
            return known


def _fetch() -> tuple[Credentials, float]:
    """The credentials, and when they end."""
    from datetime import datetime  # noqa: PLC0415 - only where snapshots are restored

    uri = os.environ.get(FULL_URI, "")
    target = AwsEndpoint.of(uri)
    if target.scheme != "https" and target.host not in NEAR:
        raise AwsUnanswered("MetadataRetrievalError", "credentials must come from this machine")
    headers = {"host": target.authority, "accept": "application/json", **_authorization()}
    connections = KeptConnections(target, WireLimits(connect_seconds=2, read_seconds=2, most_idle=0))
    for left in reversed(range(FETCH_TRIES)):
        try:
            answer = connections.exchange(request_bytes("GET", target.path, headers, b""))
            told = json.loads(answer.body) if answer.status == 200 else {}
            credentials = Credentials(told["AccessKeyId"], told["SecretAccessKey"], told.get("Token", ""))
            return credentials, datetime.fromisoformat(told["Expiration"]).timestamp()
        except (AwsUnanswered, ValueError, KeyError) as error:
            if not left:
                raise AwsUnanswered("CredentialRetrievalError", target.authority) from error
    raise AssertionError


def _authorization() -> dict[str, str]:
    file = os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
    token = Path(file).read_text().strip() if file else os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
    if "\r" in token or "\n" in token:
        raise AwsUnanswered("CredentialRetrievalError", "the authorization token has line ends")
    return {"authorization": token} if token else {}


_from_endpoint = EndpointCredentials()
"""One for all clients of a process."""


def function_credentials() -> Credentials:
    """From the environment first, as the SDKs look for them. Raises `AwsUnanswered` if there are none."""
    found = environment_credentials()
    if found is not None:
        return found
    if FULL_URI not in os.environ:
        raise AwsUnanswered("NoCredentialsError", "no credentials in the environment")
    return _from_endpoint()
