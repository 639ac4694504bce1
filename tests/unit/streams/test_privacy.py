"""P1–P3: secret values go nowhere, sensitive ones are transformed, digests cover neither."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.ledger.domain.canonical import canonical, digest
from millrace.streams.domain.envelope import make_draft
from millrace.streams.domain.privacy import (
    BASELINE_SECRET,
    BASELINE_SENSITIVE,
    PUBLIC,
    REDACTED,
    Policy,
    hasher,
    normal_name,
    transformed,
)

POLICY = Policy.of({})
HASHED = hasher(b"key")
CANARY = "canary-5b1f"
HIDDEN = {normal_name(name) for name in (*BASELINE_SECRET, *BASELINE_SENSITIVE)}

Pair = tuple[Any, Any]
"""A JSON value without anything secret or sensitive, and the same value with both strewn in."""


def respell(name: str, style: str) -> str:
    words = name.split("_")
    return {
        "snake": name,
        "upper": name.upper(),
        "camel": words[0] + "".join(word.capitalize() for word in words[1:]),
        "pascal": "".join(word.capitalize() for word in words),
        "kebab": "-".join(words),
        "title kebab": "-".join(word.capitalize() for word in words),
        "dotted": ".".join(words),
        "spaced": " ".join(words),
        "run together": "".join(words),
        "doubled": f"__{'__'.join(words)}__",
        "wide": "".join(chr(ord(c) + 0xFEE0) if "a" <= c <= "z" else c for c in name),
        "zero width": "\u200b".join(name),
    }[style]


STYLES = (
    *("snake", "upper", "camel", "pascal", "kebab", "title kebab", "dotted", "spaced"),
    *("run together", "doubled", "wide", "zero width"),
)

scalars = st.sampled_from(
    [None, True, False, 0, -1, 2**70, 1.5, -0.0, 1e300, "", "x", "Ünï✓🔑", "peer_id", "auth_token"]
)
names = st.sampled_from(["", "a", "b.c", "auth", "token", "peer", "payload", "to", "Ünï✓", "🔑", "n[0]", "id"])
secret_names = st.builds(respell, st.sampled_from(BASELINE_SECRET), st.sampled_from(STYLES))
sensitive_names = st.builds(respell, st.sampled_from(BASELINE_SENSITIVE), st.sampled_from(STYLES))
secrets = st.recursive(
    st.sampled_from([CANARY, f"Bearer {CANARY}", f"{CANARY}\n"]),
    lambda inner: st.lists(inner, min_size=1, max_size=2) | st.dictionaries(names, inner, min_size=1, max_size=2),
    max_leaves=3,
)


@st.composite
def objects(draw: st.DrawFn, members: st.SearchStrategy[Pair]) -> Pair:
    kept = draw(st.dictionaries(names, members, max_size=3))
    hidden: dict[str, Any] = draw(st.dictionaries(secret_names, secrets, max_size=2))
    hidden |= {name: pair[1] for name, pair in draw(st.dictionaries(sensitive_names, members, max_size=2)).items()}
    strewn = {name: pair[1] for name, pair in kept.items()} | hidden
    hidden_first = draw(st.booleans())
    order = reversed(strewn) if hidden_first else iter(strewn)
    return {name: pair[0] for name, pair in kept.items()}, {name: strewn[name] for name in order}


def lists(members: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    return st.lists(members, max_size=3).map(lambda pairs: ([p for p, _ in pairs], [s for _, s in pairs]))


def same(value: Any) -> Pair:
    return value, value


pairs = objects(st.recursive(scalars.map(same), lambda inner: objects(inner) | lists(inner), max_leaves=12))


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@given(pairs)
def test_a_secret_value_is_in_nothing_that_comes_out(pair: Pair) -> None:
    """P1, P2: at any depth, in any spelling, inside lists and inside sensitive objects; not even its hash comes out."""
    hashed_texts: list[str] = []

    def hashed(text: str) -> str:
        hashed_texts.append(text)
        return HASHED(text)

    sifted = POLICY.sift(pair[1], hashed)
    for result in (sifted.clean, sifted.bare, sifted.raw, hashed_texts, POLICY.without_secrets(pair[1])):
        assert CANARY not in dumped(result)


@given(pairs)
def test_an_events_digest_is_that_of_its_content_without_secret_and_sensitive_fields(pair: Pair) -> None:
    """P3: so two digests are equal if and only if what is neither secret nor sensitive is."""
    public, strewn = ({**value, "event_id": "e"} for value in pair)
    draft = make_draft(POLICY.sift(strewn, HASHED))
    assert draft.digest == digest(canonical(public))


@given(pairs)
@settings(max_examples=60)
def test_public_content_passes_untouched_and_sifting_again_changes_nothing_of_it(pair: Pair) -> None:
    """P1: what is not listed is public."""
    public = POLICY.sift(pair[0], HASHED)
    assert (public.clean, public.bare, public.raw) == (pair[0], pair[0], [])
    once = POLICY.sift(pair[1], HASHED)
    assert POLICY.sift(once.clean, HASHED).bare == once.bare
    assert POLICY.without_secrets(once.clean) == once.clean


@given(pairs)
@settings(max_examples=60)
def test_every_sensitive_value_is_kept_apart_with_its_path_and_hashed_where_it_stood(pair: Pair) -> None:
    """P3, P4: the raw value is what was sent, secrets gone; the clean one is `hmac:` and 16 hex digits, or null."""
    sifted = POLICY.sift(pair[1], HASHED)
    for path, name, value in sifted.raw:
        assert name in {normal_name(known) for known in BASELINE_SENSITIVE}
        assert normal_name(path).endswith(name)
        assert POLICY.without_secrets(value) == value

    def check(value: Any) -> int:
        if isinstance(value, list):
            return sum(check(member) for member in value)
        if not isinstance(value, dict):
            return 0
        found = 0
        for name, member in value.items():
            if normal_name(name) in HIDDEN:
                assert member is None or re.fullmatch("hmac:[0-9a-f]{16}", member)
                found += member is not None
            else:
                found += check(member)
        return found

    assert check(sifted.clean) == len(sifted.raw)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", [*BASELINE_SECRET, *BASELINE_SENSITIVE])
def test_a_name_counts_however_it_is_spelled(name: str, style: str) -> None:
    """P1."""
    sent = {"payload": [{"deep": {respell(name, style): CANARY}}]}
    assert CANARY not in dumped(POLICY.sift(sent, HASHED).clean)


@pytest.mark.parametrize("invisible", "\u115f\u1160\u3164\uffa0\u200b\u2060\u00ad\ufe0f\u034f\u180e\u17b4\U000e0020")
def test_letters_that_nobody_sees_hide_no_name(invisible: str) -> None:
    """P1."""
    sent = {f"auth_{invisible}token{invisible}": CANARY, f"{invisible}peer_id": CANARY}
    assert CANARY not in dumped(POLICY.sift(sent, HASHED).clean)


@pytest.mark.parametrize(
    "name", ["message_payloads", "token", "auth", "peer", "trace", "private_key", "", "🔑", "idpeer"]
)
def test_a_name_that_is_not_listed_is_public(name: str) -> None:
    """P1."""
    assert POLICY.sift({name: "v"}, HASHED).clean == {name: "v"}


def test_paths_say_where_a_sensitive_value_stood() -> None:
    """P4."""
    sent = {"peer_id": "a", "payload": {"hops": [{"x": 1}, {"traceId": {"n": 1, "authToken": CANARY}}]}}
    raw = POLICY.sift(sent, HASHED).raw
    assert raw == [("peer_id", "peerid", "a"), ("payload.hops[1].traceId", "traceid", {"n": 1})]


@pytest.mark.parametrize(
    ("transform", "value", "becomes"),
    [
        ("redact", "x", REDACTED),
        ("redact", {"a": 1}, REDACTED),
        ("truncate", "123456789", "12345678..."),
        ("truncate", "äöüßÄÖÜß!", "äöüßÄÖÜß..."),
        ("truncate", "12345678", REDACTED),
        ("truncate", "", REDACTED),
        ("truncate", {"b": 2, "a": [1.0]}, '{"a":[1]...'),
        ("hash", "bob", HASHED("bob")),
        ("hash", {"b": 2, "a": 1}, HASHED('{"a":1,"b":2}')),
        *((transform, None, None) for transform in ("hash", "truncate", "redact")),
    ],
)
def test_what_becomes_of_a_sensitive_value(transform: str, value: Any, becomes: Any) -> None:
    """P3: hash, truncate (8 characters and `...`) or redact; a text that truncation would show whole is redacted."""
    assert transformed(value, transform, HASHED) == becomes
    chosen = Policy.of({"transform": transform})
    assert chosen.sift({"peer_id": value}, HASHED).clean == {"peer_id": becomes}


def test_the_hash_is_keyed() -> None:
    """P3: the same under one key, another under another key, and of the documented form."""
    assert HASHED("bob") == hasher(b"key")("bob") != hasher(b"other")("bob")
    assert re.fullmatch("hmac:[0-9a-f]{16}", HASHED("bob"))


def test_a_policy_adds_fields_and_transforms() -> None:
    """P1, P3: a field that is not listed is public unless policy says otherwise."""
    fields = {"e-mail": {"class": "sensitive", "transform": "truncate"}, "Pin": {"class": "secret"}}
    chosen = Policy.of({"transform": "redact", "fields": fields})
    sent = {"EMAIL": "someone@example.org", "nested": [{"PIN": CANARY}], "peer_id": "bob"}
    sifted = chosen.sift(sent, HASHED)
    assert sifted.clean == {"EMAIL": "someone@...", "nested": [{}], "peer_id": REDACTED}
    assert sifted.bare == {"nested": [{}]}


def test_a_policy_may_make_a_sensitive_field_secret_and_never_the_reverse() -> None:
    """P2: the baseline cannot be weakened."""
    stricter = Policy.of({"fields": {"peer_id": {"class": "secret"}}})
    assert stricter.sift({"peer_id": CANARY}, HASHED).clean == {}
    weaker = Policy.of({"fields": {"authToken": {"class": "sensitive", "transform": "truncate"}}})
    assert weaker.sift({"auth_token": CANARY}, HASHED).clean == {}
    twice = {"pin": {"class": "secret"}, "P-I-N": {"class": "sensitive"}}
    for fields in (twice, dict(reversed(twice.items()))):
        assert Policy.of({"fields": fields}).sift({"Pin": CANARY}, HASHED).clean == {}


@pytest.mark.parametrize(
    "chosen",
    [
        {"transform": "none"},
        {"fields": []},
        {"clases": {}},
        {"fields": {"x": {}}},
        {"fields": {"x": "secret"}},
        {"fields": {"x": {"class": "public"}}},
        {"fields": {"x": {"class": "sensitive", "transform": "rot13"}}},
        {"fields": {"x": {"class": "secret", "depth": 1}}},
        {"fields": {"_": {"class": "secret"}}},
        *({"fields": {name.upper(): {"class": "sensitive"}}} for name in PUBLIC),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused_when_it_is_read(chosen: Mapping[str, Any]) -> None:
    """P1: above all one that would hide what the contract calls public, or what the hub reads itself."""
    with pytest.raises(ValueError, match="privacy policy"):
        Policy.of(chosen)
