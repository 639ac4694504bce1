"""Verifies HS256 tokens with the standard library alone: PyJWT would load cryptography, which they do not need."""

from __future__ import annotations

import base64
import hmac
import json
import time
from typing import Any

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

ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
MOST_PADDING = 2


def is_plain(secret: str) -> bool:
    """Whether a secret is nothing but text. A key in one of the formats for keys is no secret: PyJWT knows them all."""
    begin = secret.lstrip()[:6]
    formatted = begin.startswith(("{", "[", "ssh-", "ecdsa-")) or "----" in secret
    return bool(secret) and secret.isascii() and secret.isprintable() and not formatted


def claims_of(token: str, secret: str, expected: ExpectedToken) -> dict[str, Any]:
    """The claims of a good token. Raises `WrongSignature`, or `AuthFailed` for anything else that is wrong with it."""
    try:
        signed, signature = token.encode().rsplit(b".", 1)
        header, payload = signed.split(b".", 1)
        head, body, proof = _object(_decoded(header)), _decoded(payload), _decoded(signature)
        _check_header(head)
        if not hmac.compare_digest(hmac.digest(secret.encode(), signed, "sha256"), proof):
            raise WrongSignature
        claims = _object(body)
    except (ValueError, RecursionError) as error:
        raise unverifiable() from error
    _check_claims(claims, expected)
    return claims


def _decoded(segment: bytes) -> bytes:
    """Base64url that has one way to be written, as a rule without padding. Raises `ValueError`."""
    stripped = segment.rstrip(b"=")
    padding = len(segment) - len(stripped)
    if padding > MOST_PADDING or (padding and len(segment) % 4) or not ALPHABET.issuperset(stripped):
        raise ValueError("no base64url")
    decoded = base64.urlsafe_b64decode(stripped + b"=" * (-len(stripped) % 4))
    if base64.urlsafe_b64encode(decoded).rstrip(b"=") != stripped:
        raise ValueError("base64url with bits left over")
    return decoded


def _object(text: bytes) -> dict[str, Any]:
    parsed = json.loads(text)
    if not isinstance(parsed, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - it is what was sent that is wrong
    return parsed


def _check_header(header: dict[str, Any]) -> None:
    """The algorithm is ours to choose. Of the extensions that a token may call critical, one is harmless as a rule:
    `b64`, unless it says that the payload is elsewhere."""
    if "crit" in header:
        critical = header["crit"]
        if not (isinstance(critical, list) and set(map(str, critical)) == {"b64"} and "b64" in header):
            raise ValueError("a critical extension")
    if header.get("alg") != "HS256" or header.get("b64", True) is False or not isinstance(header.get("kid", ""), str):
        raise ValueError("another kind of token")


def _check_claims(claims: dict[str, Any], expected: ExpectedToken) -> None:
    missing = next((claim for claim in REQUIRED if claims.get(claim) is None), None)
    if missing is not None:
        raise without_claim(missing)
    _check_times(claims, time.time())
    if claims["iss"] != expected.issuer:
        raise from_another_issuer()
    if not claims["aud"]:
        raise without_claim("aud")
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if expected.audience not in audiences or not all(isinstance(one, str) for one in audiences):
        raise for_another_audience()
    if not all(isinstance(claims.get(name, ""), str) for name in ("sub", "jti")):
        raise unverifiable()


def _check_times(claims: dict[str, Any], now: float) -> None:
    for name in ("iat", "nbf"):
        if name in claims and _whole(claims[name]) > now + LEEWAY_SECONDS:
            raise unverifiable()
    if _whole(claims["exp"]) <= now - LEEWAY_SECONDS:
        raise expired()


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise unverifiable() from error
