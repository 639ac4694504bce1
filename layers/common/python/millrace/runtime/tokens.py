"""Tokens: verify a JWT and read who its bearer is. HS256 with our secret, or RS256/ES256 with an issuer's keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import AuthFailed
from millrace.runtime import hs256
from millrace.runtime.token_checks import ExpectedToken, WrongSignature, expired, unverifiable

if TYPE_CHECKING:
    from millrace.runtime.pyjwt_tokens import IssuerKeys

MAX_TOKEN_BYTES = 8 * 1024


@dataclass(slots=True)
class Tokens:
    issuer: str
    audience: str
    secrets: Callable[[], Iterable[str]]
    """The secrets to try, the likeliest first."""
    jwks_url: str = ""
    clock: Callable[[], float] = time.time
    _keys: IssuerKeys | None = field(default=None)

    def verify(self, token: str) -> Identity:
        """Raises `AuthFailed`. The algorithm is ours to choose, never the token's."""
        if len(token) > MAX_TOKEN_BYTES:
            raise AuthFailed("The token is too long.", field="authorization")
        expected = ExpectedToken(self.issuer, self.audience)
        try:
            claims = self._signed_by_issuer(token, expected) if self.jwks_url else self._signed_by_us(token, expected)
        except WrongSignature as error:
            raise unverifiable() from error
        identity = Identity.of(claims)
        if identity.expires_ms <= self.clock() * 1000:
            raise expired()  # the leeway is for clocks that start it
        return identity

    def _signed_by_us(self, token: str, expected: ExpectedToken) -> dict[str, Any]:
        wrong = WrongSignature("There is no secret.")
        for secret in self.secrets():
            try:
                return _claims_of(token, secret, expected)
            except WrongSignature as error:
                wrong = error
        raise wrong

    def _signed_by_issuer(self, token: str, expected: ExpectedToken) -> dict[str, Any]:
        if self._keys is None:
            from millrace.runtime.pyjwt_tokens import IssuerKeys

            self._keys = IssuerKeys(self.jwks_url)
        return self._keys.claims_of(token, expected)


def _claims_of(token: str, secret: str, expected: ExpectedToken) -> dict[str, Any]:
    if hs256.is_plain(secret):
        return hs256.claims_of(token, secret, expected)
    from millrace.runtime import pyjwt_tokens

    return pyjwt_tokens.claims_of(token, secret, ["HS256"], expected)
