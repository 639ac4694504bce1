"""HS256 by the standard library refuses and takes what PyJWT does, for the same reasons; and loads less."""

from __future__ import annotations

import base64
import hmac
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.ledger.domain.errors import AuthFailed
from millrace.runtime import hs256, pyjwt_tokens
from millrace.runtime.token_checks import ExpectedToken, WrongSignature

SECRET = "s" * 48
EXPECTED = ExpectedToken("me", "us")
NOW = int(time.time())
GOOD = {"iss": "me", "aud": "us", "exp": NOW + 86_400, "client_id": "C1"}
HEAD = {"alg": "HS256", "typ": "JWT"}


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed(header: Any, payload: Any, secret: str = SECRET) -> str:
    parts = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in (header, payload)]
    text = ".".join(map(b64, parts))
    return f"{text}.{b64(hmac.digest(secret.encode(), text.encode(), 'sha256'))}"


def verdict(verify: Any, *arguments: Any) -> Any:
    try:
        return verify(*arguments)
    except WrongSignature:
        return "wrong signature"
    except AuthFailed as error:
        return error.message, dict(error.details)


def both(token: str, secret: str = SECRET) -> tuple[Any, Any]:
    theirs = verdict(pyjwt_tokens.claims_of, token, secret, ["HS256"], EXPECTED)
    return verdict(hs256.claims_of, token, secret, EXPECTED), theirs


TIMES: list[Any] = [
    0,
    1,
    NOW - 6,
    NOW - 3,
    NOW + 3,
    NOW + 60,
    4 * 10**9,
    -1,
    1.5,
    NOW + 0.5,
    1e400,
    True,
    False,
    None,
    "",
    "12",
    "x",
]
TIMES += [str(NOW + 60), f" {NOW + 60} ", [], [1], {}, "１２", "nan", 10**30]
WORDS: list[Any] = [
    "",
    "me",
    "us",
    "them",
    None,
    0,
    1,
    True,
    [],
    ["us"],
    ["them", "us"],
    ["us", 1],
    [["us"]],
    {},
    {"us": 1},
    "us ",
]


def claims() -> Iterator[dict[str, Any]]:
    yield GOOD
    for name in ("exp", "nbf", "iat"):
        yield from ({**GOOD, name: value} for value in TIMES)
    for name in ("iss", "aud", "sub", "jti", "client_id"):
        yield from ({**GOOD, name: value} for value in WORDS)
    for name in GOOD:
        yield {key: value for key, value in GOOD.items() if key != name}
    yield {}
    yield {**GOOD, "exp": 1, "aud": "them", "iss": "them"}
    yield {**GOOD, "exp": 1, "aud": None}
    yield {**GOOD, "nbf": 4 * 10**9, "exp": 1}


def test_claims_of_every_form_meet_the_same_answer() -> None:
    for one in claims():
        ours, theirs = both(signed(HEAD, one))
        assert ours == theirs, one


def headers() -> Iterator[Any]:
    algorithms: list[Any] = ["none", "None", "HS384", "RS256", "hs256", "", None, ["HS256"], 1, {}]
    yield from ({**HEAD, "alg": alg} for alg in algorithms)
    yield {"typ": "JWT"}
    yield {"alg": "HS256"}
    yield {**HEAD, "typ": 5, "cty": "JWT", "jku": "https://evil", "jwk": {"kty": "oct"}}
    yield from ({**HEAD, "kid": kid} for kid in ("k", "", 1, None, ["k"]))
    for crit in (["b64"], [], ["exp"], ["b64", "exp"], ["b64", "b64"], [1], [["b64"]], "b64", {"b64": 1}, None, [None]):
        for more in ({}, {"b64": True}, {"b64": False}, {"b64": None}, {"exp": 1}):
            yield {**HEAD, "crit": crit, **more}
    yield from ({**HEAD, "b64": value} for value in (True, False, None, 0, "false"))
    yield from (b"", b"{", b"[]", b"null", b"5", b'"HS256"', b"\xff", b'{"alg":"HS256","alg":"none"}', b"[" * 100_000)
    yield json.dumps(HEAD).encode("utf-16")
    yield b"\xef\xbb\xbf" + json.dumps(HEAD).encode()


def test_headers_of_every_form_meet_the_same_answer() -> None:
    for one in headers():
        ours, theirs = both(signed(one, GOOD))
        assert ours == theirs, one


def test_payloads_that_are_no_claims_meet_the_same_answer() -> None:
    for payload in (
        b"",
        b"{",
        b"[]",
        b"null",
        b"5",
        b"\xff",
        b"NaN",
        b'{"exp": NaN}',
        b"[" * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
    ):
        ours, theirs = both(signed(HEAD, payload))
        assert ours == theirs, payload[:20]


def writings(token: str) -> Iterator[str]:
    header, payload, signature = token.split(".")
    yield from (
        "",
        ".",
        "..",
        "...",
        "a.b",
        "a.b.c",
        "é.é.é",
        "\ud800.a.b",
        f"{token}.",
        f".{token}",
        f"{token}.x",
        f" {token}",
    )
    yield f"{header}..{signature}"
    yield f"{header}.{payload}."
    yield f"{header}.{payload}"
    for text in ("=", "==", "===", "====", "!", " ", "\n", "A", "AA", "é"):
        yield f"{header}{text}.{payload}.{signature}"
        yield f"{header}.{payload}{text}.{signature}"
        yield f"{header}.{payload}.{signature}{text}"
    yield f"{header}.{payload}.{signature[:-1]}"
    yield from (f"{header}.{payload}.{signature[:-1]}{last}" for last in "ABCDEFGHabcdefgh01234567-_+/")
    yield f"{header}.{payload}.{signature}".replace("-", "+").replace("_", "/")


def test_a_token_that_is_written_otherwise_meets_the_same_answer() -> None:
    for one in writings(signed(HEAD, GOOD)):
        ours, theirs = both(one)
        assert ours == theirs, one


@pytest.mark.parametrize("filler", range(3))
def test_padding_that_belongs_there_is_taken_as_pyjwt_takes_it(filler: int) -> None:
    """Some issuers write it."""
    header, payload = (
        base64.urlsafe_b64encode(json.dumps(one).encode()).decode() for one in ({**HEAD, "x": "y" * filler}, GOOD)
    )
    text = f"{header}.{payload}"
    signature = base64.urlsafe_b64encode(hmac.digest(SECRET.encode(), text.encode(), "sha256")).decode()
    ours, theirs = both(f"{text}.{signature}")
    assert ours == theirs == GOOD


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_text_meets_the_same_answer(token: str) -> None:
    ours, theirs = both(token)
    assert ours == theirs


@given(
    st.dictionaries(
        st.sampled_from(["iss", "aud", "exp", "nbf", "iat", "sub", "jti", "x"]),
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(-10, 10**11),
            st.floats(),
            st.text(max_size=4),
            st.just("me"),
            st.just("us"),
            st.lists(st.text(max_size=3), max_size=2),
        ),
    )
)
def test_any_claims_meet_the_same_answer(changes: dict[str, Any]) -> None:
    ours, theirs = both(signed(HEAD, {**GOOD, **changes}))
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize(
    "secret", ["x" * 32, 'with spaces and "quotes"' * 2, "12345" * 8, '"kty"' * 8, "true" + " " * 40]
)
def test_a_plain_secret_verifies_as_with_pyjwt(secret: str) -> None:
    assert hs256.is_plain(secret)
    ours, theirs = both(signed(HEAD, GOOD, secret), secret)
    assert ours == theirs == GOOD


PEM = "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----"


@pytest.mark.parametrize(
    "secret",
    [
        PEM,
        PEM.replace("\n", " "),
        "ssh-rsa AAAA",
        "ecdsa-sha2-nistp256 AAAA",
        '{"kty": "oct"}',
        ' [{"kty": 1}]',
        "é" * 40,
        "\x30\x2a\x06" * 20,
        "",
    ],
)
def test_a_secret_in_the_format_of_a_key_is_left_to_pyjwt(secret: str) -> None:
    """It refuses those that are keys: whoever knows the public one could sign with it."""
    assert not hs256.is_plain(secret)


def test_another_secret_is_a_wrong_signature_and_nothing_else() -> None:
    assert both(signed(HEAD, GOOD, "o" * 48)) == ("wrong signature", "wrong signature")
    assert both(jwt.encode({**GOOD, "exp": 1}, "o" * 48, "HS256")) == ("wrong signature", "wrong signature")


def test_a_process_that_verifies_hs256_loads_neither_pyjwt_nor_cryptography() -> None:
    layer = Path(__file__).parents[3] / "layers" / "common" / "python"
    program = f"""
import sys
from millrace.runtime.tokens import Tokens
assert Tokens("me", "us", lambda: ["{SECRET}"]).verify("{signed(HEAD, {**GOOD, "projects": ["p"]})}").client_id == "C1"
print(sorted({{"jwt", "cryptography", "boto3", "botocore"}} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(layer)}, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"
