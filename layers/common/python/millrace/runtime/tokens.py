"""Tokens: verify a JWT and read who its bearer is. HS256 with our secret, or RS256/ES256 with an issuer's keys."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import jwt

from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import AuthFailed, Unavailable

LEEWAY_SECONDS = 5
REQUIRED = ["exp", "iss", "aud"]
MAX_TOKEN_BYTES = 8 * 1024


@dataclass(slots=True)
class Tokens:
    issuer: str
    audience: str
    secret: Callable[[], str]
    jwks_url: str = ""
    clock: Callable[[], float] = time.time
    _keys: jwt.PyJWKClient | None = field(default=None)

    def verify(self, token: str) -> Identity:
        """Raises `AuthFailed`. The algorithm is ours to choose, never the token's."""
        if len(token) > MAX_TOKEN_BYTES:
            raise AuthFailed("The token is too long.", field="authorization")
        try:
            key, algorithms = self._key(token)
            claims = jwt.decode(
                token,
                key,
                algorithms=algorithms,
                issuer=self.issuer,
                audience=self.audience,
                leeway=LEEWAY_SECONDS,
                options={"require": REQUIRED},
            )
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

    def _key(self, token: str) -> tuple[str | jwt.PyJWK, list[str]]:
        if not self.jwks_url:
            return self.secret(), ["HS256"]
        if self._keys is None:
            self._keys = jwt.PyJWKClient(self.jwks_url, cache_keys=True, lifespan=300, timeout=3)
        return self._keys.get_signing_key_from_jwt(token), ["RS256", "ES256"]
