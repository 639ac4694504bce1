"""Who sends a request: the verifier of tokens, built on first use."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING

from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from millrace.runtime.tokens import Tokens


@cache
def tokens() -> Tokens:
    from millrace.runtime.token_secrets import TokenSecrets
    from millrace.runtime.tokens import Tokens

    secrets = TokenSecrets(_token_secret, lambda: time.monotonic_ns() // 1_000_000)
    return Tokens(setting("TOKEN_ISSUER"), setting("TOKEN_AUDIENCE"), secrets, setting("TOKEN_JWKS_URL", ""))


def _token_secret(stage: str) -> str | None:
    from millrace.runtime.clients import read_secret_stage

    return read_secret_stage(setting("TOKEN_SECRET_ARN"), stage)
