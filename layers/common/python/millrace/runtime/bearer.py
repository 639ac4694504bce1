"""Who sends a request, and whether its tenant sends too many: built on first use."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING

from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from millrace.ledger.application.limit_requests import LimitRequests
    from millrace.runtime.tokens import Tokens


@cache
def tokens() -> Tokens:
    from millrace.ledger.adapters.staged_secret import StagedSecret
    from millrace.runtime.tokens import Tokens

    secrets = StagedSecret(_token_secret, lambda: time.monotonic_ns() // 1_000_000)
    return Tokens(setting("TOKEN_ISSUER"), setting("TOKEN_AUDIENCE"), secrets, setting("TOKEN_JWKS_URL", ""))


def _token_secret(stage: str) -> str | None:
    from millrace.runtime.clients import read_secret_stage

    return read_secret_stage(setting("TOKEN_SECRET_ARN"), stage)


def count_request(tenant: str) -> None:
    """Every request and every message with a token comes by here, once. Raises `Throttled`."""
    request_limit()(tenant)


@cache
def request_limit() -> LimitRequests:
    from millrace.ledger.adapters.dynamodb.meter import DynamoMeter
    from millrace.ledger.application.limit_requests import LimitRequests
    from millrace.ledger.domain.rates import Rate
    from millrace.runtime.clients import dynamodb_client

    rate = Rate(int(setting("TENANT_REQUESTS", "500")), int(setting("TENANT_REQUEST_BURST", "1000")))
    return LimitRequests(DynamoMeter(dynamodb_client(), setting("STATE_TABLE")), rate, lambda: time.time_ns() // 1000)
