"""Tokens are verified in the function: our algorithm, issuer, audience and time, and then their claims."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from millrace.ledger.adapters.staged_secret import ASKED_AGAIN_MS, KEPT_MS, StagedSecret
from millrace.ledger.domain.errors import AuthFailed, Unavailable
from millrace.runtime.pyjwt_tokens import KEYS_SECONDS
from millrace.runtime.tokens import MAX_TOKEN_BYTES, Tokens

SECRET = "s" * 48
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def claims(**changes: Any) -> dict[str, Any]:
    every = {"iss": "me", "aud": "us", "exp": int(time.time()) + 60, "client_id": "C1", "projects": ["p"], **changes}
    return {name: value for name, value in every.items() if value is not None}


def with_secret() -> Tokens:
    return Tokens("me", "us", lambda: [SECRET])


@dataclass
class JwksServer:
    url: str
    keys: list[Any]


@pytest.fixture
def jwks_url(jwks: JwksServer) -> str:
    return jwks.url


@pytest.fixture
def jwks() -> Iterator[JwksServer]:
    """An issuer's keys on loopback."""
    keys = [
        {
            **json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA_KEY.public_key())),
            "kid": "r",
            "alg": "RS256",
            "use": "sig",
        },
        {
            **json.loads(jwt.algorithms.ECAlgorithm.to_jwk(EC_KEY.public_key())),
            "kid": "e",
            "alg": "ES256",
            "use": "sig",
        },
    ]
    served = JwksServer("", keys)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"keys": served.keys}).encode())

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the base class's name
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        served.url = f"http://127.0.0.1:{server.server_port}/jwks.json"
        yield served
        server.shutdown()


def test_a_good_token_says_who_its_bearer_is() -> None:
    token = jwt.encode(claims(roles=["producer", "king"], partitions=["a*"], tenant="t"), SECRET, "HS256")
    identity = with_secret().verify(token)
    assert (identity.client_id, identity.tenant, identity.projects) == ("C1", "t", frozenset({"p"}))
    assert identity.roles == {"producer"}
    assert identity.team_slug == "t"
    assert identity.reaches("abc")
    assert not identity.reaches("b")
    assert not identity.sees_everything


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1},
        {"exp": None},
        {"aud": "them"},
        {"aud": None},
        {"iss": "them"},
        {"iss": None},
        {"nbf": 4_000_000_000},
        {"client_id": None},
        {"client_id": ""},
        {"client_id": 5},
        {"client_id": "x" * 129},
        {"projects": "p"},
        {"projects": [1]},
        {"tenant": ""},
        {"partitions": {"a": 1}},
    ],
    ids=str,
)
def test_a_token_with_a_wrong_claim_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(AuthFailed):
        with_secret().verify(jwt.encode(claims(**changes), SECRET, "HS256"))


@pytest.mark.parametrize(
    "token", ["", "x", "a.b.c", jwt.encode(claims(), "", "none"), jwt.encode(claims(), "o" * 48, "HS256")]
)
def test_an_unsigned_or_foreign_token_is_refused(token: str) -> None:
    with pytest.raises(AuthFailed):
        with_secret().verify(token)


def test_a_token_that_is_too_long_is_refused_before_it_is_looked_at() -> None:
    """At every door: the WebSocket hands its token to the same place."""
    long = jwt.encode(claims(more="x" * MAX_TOKEN_BYTES), SECRET, "HS256")
    with pytest.raises(AuthFailed, match="too long"):
        with_secret().verify(long)


def test_another_algorithm_than_ours_is_refused() -> None:
    for algorithm in ("HS384", "HS512"):
        with pytest.raises(AuthFailed):
            with_secret().verify(jwt.encode(claims(), SECRET * 2, algorithm))
    with pytest.raises(AuthFailed):
        with_secret().verify(jwt.encode(claims(), RSA_KEY, "RS256"))


def test_an_issuers_keys_verify_rs256_and_es256(jwks_url: str) -> None:
    tokens = Tokens("me", "us", lambda: [SECRET], jwks_url)
    assert tokens.verify(jwt.encode(claims(), RSA_KEY, "RS256", {"kid": "r"})).client_id == "C1"
    assert tokens.verify(jwt.encode(claims(), EC_KEY, "ES256", {"kid": "e"})).client_id == "C1"


def test_with_an_issuers_keys_our_secret_opens_nothing(jwks_url: str) -> None:
    tokens = Tokens("me", "us", lambda: [SECRET], jwks_url)
    for forged in (
        jwt.encode(claims(), SECRET, "HS256", {"kid": "r"}),
        jwt.encode(claims(), rsa.generate_private_key(public_exponent=65537, key_size=2048), "RS256", {"kid": "r"}),
        jwt.encode(claims(), RSA_KEY, "RS256", {"kid": "unknown"}),
        jwt.encode(claims(), "", "none", {"kid": "r"}),
    ):
        with pytest.raises(AuthFailed):
            tokens.verify(forged)


def test_an_issuer_that_cannot_be_reached_is_not_the_callers_mistake() -> None:
    tokens = Tokens("me", "us", lambda: [SECRET], "http://127.0.0.1:9/jwks.json")
    with pytest.raises(Unavailable):
        tokens.verify(jwt.encode(claims(), RSA_KEY, "RS256", {"kid": "r"}))


def test_a_token_is_refused_the_moment_it_expires() -> None:
    token = jwt.encode(claims(exp=int(time.time()) - 1), SECRET, "HS256")
    with pytest.raises(AuthFailed, match="expired"):
        with_secret().verify(token)


def rotating(stages: dict[str, str], clock: Callable[[], int], reads: list[str]) -> Tokens:
    def read(stage: str) -> str | None:
        reads.append(stage)
        return stages.get(stage)

    return Tokens("me", "us", StagedSecret(read, clock))


def test_a_token_outlives_one_rotation_of_the_secret_and_not_two() -> None:
    now, reads = 0, list[str]()
    stages = {"AWSCURRENT": SECRET}
    tokens = rotating(stages, lambda: now, reads)
    old = jwt.encode(claims(), SECRET, "HS256")
    tokens.verify(old)
    assert reads == ["AWSCURRENT"]

    second, third = "2" * 64, "3" * 64
    stages.update(AWSCURRENT=second, AWSPREVIOUS=SECRET)
    now = KEPT_MS
    tokens.verify(old)
    tokens.verify(jwt.encode(claims(), second, "HS256"))

    stages.update(AWSCURRENT=third, AWSPREVIOUS=second)
    now = 2 * KEPT_MS
    with pytest.raises(AuthFailed):
        tokens.verify(old)


def test_a_new_secret_is_honoured_at_once_and_strangers_cost_one_look_a_second() -> None:
    now, reads = 0, list[str]()
    stages = {"AWSCURRENT": SECRET}
    tokens = rotating(stages, lambda: now, reads)
    tokens.verify(jwt.encode(claims(), SECRET, "HS256"))
    second = "2" * 64
    stages.update(AWSCURRENT=second, AWSPREVIOUS=SECRET)
    now = ASKED_AGAIN_MS
    tokens.verify(jwt.encode(claims(), second, "HS256"))

    reads.clear()
    stranger = jwt.encode(claims(), "x" * 64, "HS256")
    for now in range(ASKED_AGAIN_MS, 3 * ASKED_AGAIN_MS, 100):  # noqa: B007 - the clock
        with pytest.raises(AuthFailed):
            tokens.verify(stranger)
    assert reads.count("AWSCURRENT") <= 2


def test_a_secret_that_cannot_be_read_afresh_is_used_as_it_was_known() -> None:
    now, broken = 0, False

    def read(_stage: str) -> str:
        if broken:
            raise Unavailable("not now")
        return SECRET

    tokens = Tokens("me", "us", StagedSecret(read, lambda: now))
    token = jwt.encode(claims(), SECRET, "HS256")
    tokens.verify(token)
    now, broken = 2 * KEPT_MS, True
    assert tokens.verify(token).client_id == "C1"


def test_a_key_that_the_issuer_withdrew_is_forgotten_within_minutes(
    jwks: JwksServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = Tokens("me", "us", lambda: [SECRET], jwks.url)
    token = jwt.encode(claims(exp=int(time.time()) + 3600), RSA_KEY, "RS256", {"kid": "r"})
    tokens.verify(token)
    jwks.keys = jwks.keys[1:]
    tokens.verify(token)
    later = time.monotonic() + KEYS_SECONDS + 1
    monkeypatch.setattr("jwt.jwk_set_cache.time.monotonic", lambda: later)
    with pytest.raises(AuthFailed):
        tokens.verify(token)
