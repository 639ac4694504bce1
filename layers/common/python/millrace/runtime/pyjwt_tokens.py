"""Verifies tokens with PyJWT: those of an issuer with keys of its own, and those that HS256 in plain does not fit."""

from __future__ import annotations

from typing import Any

import jwt

from millrace.ledger.domain.errors import Unavailable
from millrace.runtime.token_checks import (
    LEEWAY_SECONDS,
    REQUIRED,
    ExpectedToken,
    WrongSignature,
    expired,
    for_another_audience,
    from_another_issuer,
    unverifiable,
    without_claim,
)

KEYS_SECONDS = 300
"""How long the issuer's keys are kept, so how long one that it withdrew goes on opening the hub."""


class IssuerKeys:
    """A key that the issuer withdrew is forgotten with the set it was in: single keys are not kept."""

    def __init__(self, url: str) -> None:
        self._keys = jwt.PyJWKClient(url, cache_keys=False, lifespan=KEYS_SECONDS, timeout=3)

    def claims_of(self, token: str, expected: ExpectedToken) -> dict[str, Any]:
        """Raises `AuthFailed`, `WrongSignature`, or `Unavailable` if the keys cannot be read."""
        try:
            key = self._keys.get_signing_key_from_jwt(token)
        except jwt.PyJWKClientConnectionError as error:
            raise Unavailable("The token issuer's keys cannot be read now; try again.") from error
        except (jwt.PyJWTError, ValueError) as error:
            raise unverifiable() from error
        return claims_of(token, key, ["RS256", "ES256"], expected)


def claims_of(token: str, key: str | jwt.PyJWK, algorithms: list[str], expected: ExpectedToken) -> dict[str, Any]:
    """The claims of a good token. Raises `WrongSignature`, or `AuthFailed` for anything else that is wrong with it."""
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=algorithms,
            issuer=expected.issuer,
            audience=expected.audience,
            leeway=LEEWAY_SECONDS,
            options={"require": list(REQUIRED)},
        )
    except jwt.InvalidSignatureError as error:
        raise WrongSignature from error
    except jwt.ExpiredSignatureError as error:
        raise expired() from error
    except jwt.InvalidAudienceError as error:
        raise for_another_audience() from error
    except jwt.InvalidIssuerError as error:
        raise from_another_issuer() from error
    except jwt.MissingRequiredClaimError as error:
        raise without_claim(error.claim) from error
    except (jwt.PyJWTError, ValueError) as error:
        raise unverifiable() from error
    return claims
