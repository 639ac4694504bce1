"""Tokens: verify a JWT and read who its bearer is. HS256 with our secret, or RS256/ES256 with an issuer's keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import jwt

from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import AuthFailed, Unavailable

LEEWAY_SECONDS = 5
REQUIRED = ["exp", "iss", "aud"]
MAX_TOKEN_BYTES = 8 * 1024
KEYS_SECONDS = 300
"""How long the issuer's keys are kept, so how long one that it withdrew goes on opening the hub."""


@dataclass(slots=True)
class Tokens:
    issuer: str
    audience: str
    secrets: Callable[[], Iterable[str]]
    """The secrets to try, the likeliest first."""
    jwks_url: str = ""
    clock: Callable[[], float] = time.time
    _keys: jwt.PyJWKClient | None = field(default=None)

    def verify(self, token: str) -> Identity:
        """Raises `AuthFailed`. The algorithm is ours to choose, never the token's."""
        if len(token) > MAX_TOKEN_BYTES:
            raise AuthFailed("The token is too long.", field="authorization")
        try:
            claims = self._signed_by_issuer(token) if self.jwks_url else self._signed_by_us(token)
        except jwt.ExpiredSignatureError as error:
            raise AuthFailed("The token has expired.", claim="exp") from error
        except jwt.InvalidAudienceError as error:
            raise AuthFailed("The token is for another audience.", claim="aud") from error
        except jwt.InvalidIssuerError as error:
            raise AuthFailed("The token is from another issuer.", claim="iss") from error
        except jwt.MissingRequiredClaimError as error:
            raise AuthFailed(f"The token has no claim {error.claim}.", claim=error.claim) from error
        except jwt.PyJWKClientConnectionError as error:
            raise Unavailable("The token issuer's keys cannot be read now; try again.") from error
        except (jwt.PyJWTError, ValueError) as error:
            raise AuthFailed("The token cannot be verified.") from error
        identity = Identity.of(claims)
        if identity.expires_ms <= self.clock() * 1000:
            raise AuthFailed("The token has expired.", claim="exp")  # the leeway is for clocks that start it
        return identity

    def _signed_by_us(self, token: str) -> dict[str, Any]:
        wrong: jwt.InvalidSignatureError | None = None
        for secret in self.secrets():
            try:
                return self._claims(token, secret, ["HS256"])
            except jwt.InvalidSignatureError as error:
                wrong = error
        raise wrong or jwt.InvalidSignatureError("There is no secret.")

    def _signed_by_issuer(self, token: str) -> dict[str, Any]:
        """A key that the issuer withdrew is forgotten with the set it was in: single keys are not kept."""
        if self._keys is None:
            self._keys = jwt.PyJWKClient(self.jwks_url, cache_keys=False, lifespan=KEYS_SECONDS, timeout=3)
        return self._claims(token, self._keys.get_signing_key_from_jwt(token), ["RS256", "ES256"])

    def _claims(self, token: str, key: str | jwt.PyJWK, algorithms: list[str]) -> dict[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=algorithms,
            issuer=self.issuer,
            audience=self.audience,
            leeway=LEEWAY_SECONDS,
            options={"require": REQUIRED},
        )
        return claims
