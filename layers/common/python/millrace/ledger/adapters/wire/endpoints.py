"""Where AWS's services are, and whether the lean wire knows its way in this environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from millrace.ledger.adapters.wire.credentials import FULL_URI
from millrace.ledger.adapters.wire.regions import suffix

ELSEWHERE = ("AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
"""Settings of the SDKs that change where a call goes, and that only boto3 knows."""
PROXIES = ("HTTPS_PROXY", "https_proxy")


def region() -> str:
    """Raises a `RuntimeError` if the environment does not say."""
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not named:
        raise RuntimeError("the environment variable AWS_REGION is not set")
    return named


def endpoint_url(service: str, setting: str, in_region: str) -> str:
    """A service's address: as the environment says, for all services or for this one; else the region's."""
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() != "true":
        given = os.environ.get(f"AWS_ENDPOINT_URL_{setting}") or os.environ.get("AWS_ENDPOINT_URL")
        if given:
            return given
    return f"https://{service}.{in_region}.{suffix(in_region)}"


def is_known(environment: Mapping[str, str]) -> bool:
    """Whether the lean wire does in this environment what boto3 would."""
    elsewhere = ELSEWHERE if "AWS_ENDPOINT_URL" in environment else (*ELSEWHERE, *PROXIES)
    has_credentials = bool(environment.get("AWS_ACCESS_KEY_ID") or environment.get(FULL_URI))
    return has_credentials and not any(environment.get(name, "").lower() not in ("", "false") for name in elsewhere)
