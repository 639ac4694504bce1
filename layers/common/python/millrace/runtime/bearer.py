"""Who sends a request: the verifier of tokens, built on first use."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from millrace.runtime.tokens import Tokens

SECRET_SECONDS = 300


@cache
def tokens() -> Tokens:
    from millrace.runtime.tokens import Tokens

    return Tokens(setting("TOKEN_ISSUER"), setting("TOKEN_AUDIENCE"), _token_secret, setting("TOKEN_JWKS_URL", ""))


def _token_secret() -> str:
    from millrace.runtime.clients import read_secret

    return read_secret(setting("TOKEN_SECRET_ARN"), SECRET_SECONDS)
