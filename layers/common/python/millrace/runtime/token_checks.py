"""What every token must be, and what is said of one that is not."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.ledger.domain.errors import AuthFailed

LEEWAY_SECONDS = 5
REQUIRED = ("exp", "iss", "aud")


class WrongSignature(Exception):
    """The token was signed with another secret."""


@dataclass(frozen=True, slots=True)
class ExpectedToken:
    issuer: str
    audience: str


def expired() -> AuthFailed:
    return AuthFailed("The token has expired.", claim="exp")


def for_another_audience() -> AuthFailed:
    return AuthFailed("The token is for another audience.", claim="aud")


def from_another_issuer() -> AuthFailed:
    return AuthFailed("The token is from another issuer.", claim="iss")


def without_claim(claim: str) -> AuthFailed:
    return AuthFailed(f"The token has no claim {claim}.", claim=claim)


def unverifiable() -> AuthFailed:
    return AuthFailed("The token cannot be verified.")
