"""Privacy (P1–P3): what a field's name says about its value, and what becomes of the value before anything is stored.

Secret values are dropped, sensitive ones transformed. A name counts at any depth, however it is spelled: `auth_token`,
`AUTH_TOKEN`, `authToken` and `Auth-Token` are one name.
"""

from __future__ import annotations

import hmac
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from millrace.ledger.domain.canonical import canonical

SECRET, SENSITIVE = "secret", "sensitive"
HASH, TRUNCATE, REDACT = "hash", "truncate", "redact"
TRANSFORMS = (HASH, TRUNCATE, REDACT)
REDACTED = "[redacted]"
KEPT_CHARACTERS = 8
INVISIBLE = dict.fromkeys((0x115F, 0x1160, 0x3164, 0xFFA0))
"""Letters that nobody sees: Hangul fillers. What else Unicode ignores by default is no letter or digit."""

BASELINE_SECRET = ("message_payload", "auth_token", "private_key_material", "session_secret")
BASELINE_SENSITIVE = ("peer_id", "destination_hash", "correlation_id", "trace_id")
PUBLIC = (
    *("event_id", "runtime_id", "stream_id", "seq_no", "event_type", "severity", "source_component", "ts_ms"),
    *("contract_version", "message_id", "payload", "extensions", "to", "extension_event_type"),
    *("expected_seq_no", "observed_seq_no", "dropped_count", "marker", "marker_id", "revision", "position"),
    *("lat", "lon", "alt_m", "topic_id"),
)
"""Never anything else: the eight of the contract, and what the hub itself needs to read of an event."""


@lru_cache(maxsize=8192)
def normal_name(name: str) -> str:
    """A name without its spelling: letter case, width, and what separates its words."""
    folded = unicodedata.normalize("NFKC", name).casefold().translate(INVISIBLE)
    return folded if folded.isalnum() else "".join(letter for letter in folded if letter.isalnum())


@dataclass(slots=True)
class Sifted:
    """`clean` may be stored. `bare` is what a digest covers. `raw` are the sensitive values, by path, secrets gone."""

    clean: Any = None
    bare: Any = None
    raw: list[tuple[str, str, Any]] = field(default_factory=list)
    """Path, name as the policy knows it, value."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Classes by normal name: `secret`, or the transform of a sensitive one. Unlisted names are public."""

    secret: frozenset[str]
    sensitive: Mapping[str, str]

    @classmethod
    def of(cls, chosen: Mapping[str, Any]) -> Policy:
        """The baseline with a deployment's own fields. It can be made stricter, never weaker.

        `{"transform": "hash", "fields": {"email": {"class": "sensitive", "transform": "truncate"}}}`
        """
        unknown = set(chosen) - {"transform", "fields"}
        default = chosen.get("transform", HASH)
        fields = chosen.get("fields", {})
        if unknown or default not in TRANSFORMS or not isinstance(fields, dict):
            raise ValueError(f"a privacy policy has a transform ({', '.join(TRANSFORMS)}) and fields, nothing else")
        secret = {normal_name(name) for name in BASELINE_SECRET}
        sensitive = {normal_name(name): default for name in BASELINE_SENSITIVE}
        for name, rule in fields.items():
            _add_rule(name, rule, default, secret, sensitive)
        return cls(frozenset(secret), sensitive)

    def stored(self) -> dict[str, Any]:
        return {"secret": sorted(self.secret), "sensitive": dict(sorted(self.sensitive.items()))}

    def sift(self, value: Any, hashed: Callable[[str], str]) -> Sifted:
        """Take a value apart. Nothing of a secret is in any of the three results."""
        sifted = Sifted()
        clean, bare = self._walk(value, "", hashed, sifted.raw)
        sifted.clean, sifted.bare = clean, bare
        return sifted

    def _walk(self, value: Any, path: str, hashed: Callable[[str], str], raw: list[tuple[str, str, Any]]) -> Any:
        """The clean and the bare form. They are one object as long as nothing sensitive is inside."""
        if type(value) is dict:
            return self._walk_object(value, path, hashed, raw)
        if type(value) is list:
            pairs = [self._walk(member, f"{path}[{at}]", hashed, raw) for at, member in enumerate(value)]
            clean = [pair[0] for pair in pairs]
            same = all(pair[0] is pair[1] for pair in pairs)
            return clean, clean if same else [pair[1] for pair in pairs]
        return value, value

    def _walk_object(
        self, value: dict[str, Any], path: str, hashed: Callable[[str], str], raw: list[tuple[str, str, Any]]
    ) -> tuple[Any, Any]:
        clean: dict[str, Any] = {}
        bare: dict[str, Any] | None = None
        for name, member in value.items():
            known = normal_name(name)
            if known in self.secret:
                continue
            transform = self.sensitive.get(known)
            if transform is None:
                inner, inner_bare = self._walk(member, f"{path}.{name}" if path else name, hashed, raw)
                if bare is None and inner is not inner_bare:
                    bare = dict(clean)
                clean[name] = inner
                if bare is not None:
                    bare[name] = inner_bare
                continue
            if bare is None:
                bare = dict(clean)
            cleaned = self.without_secrets(member)
            if cleaned is not None:
                raw.append((f"{path}.{name}" if path else name, known, cleaned))
            clean[name] = transformed(cleaned, transform, hashed)
        return clean, clean if bare is None else bare

    def without_secrets(self, value: Any) -> Any:
        """The value with every secret inside it gone, and nothing else changed."""
        if type(value) is dict:
            kept = {name: m for name, m in value.items() if normal_name(name) not in self.secret}
            return {name: self.without_secrets(member) for name, member in kept.items()}
        if type(value) is list:
            return [self.without_secrets(member) for member in value]
        return value


def _add_rule(name: str, rule: Any, default: str, secret: set[str], sensitive: dict[str, str]) -> None:
    known = normal_name(name)
    if not isinstance(rule, dict) or set(rule) - {"class", "transform"} or rule.get("class") not in (SECRET, SENSITIVE):
        raise ValueError(f"the privacy policy's field {name} needs a class: {SECRET} or {SENSITIVE}")
    transform = rule.get("transform", default)
    if transform not in TRANSFORMS:
        raise ValueError(f"the privacy policy's field {name} has no transform of {', '.join(TRANSFORMS)}")
    if not known or known in {normal_name(public) for public in PUBLIC}:
        raise ValueError(f"the privacy policy cannot hide {name}: the hub reads it")
    if rule["class"] == SECRET:
        secret.add(known)
        sensitive.pop(known, None)
    elif known not in secret:
        sensitive[known] = transform


def transformed(value: Any, transform: str, hashed: Callable[[str], str]) -> Any:
    """Null stays null: it says nothing. What is not a string is transformed as its canonical text."""
    if value is None:
        return None
    if transform == REDACT:
        return REDACTED
    text = value if isinstance(value, str) else canonical(value).decode()
    if transform == HASH:
        return hashed(text)
    # A text that its first characters would give away whole is not truncated but hidden.
    return text[:KEPT_CHARACTERS] + "..." if len(text) > KEPT_CHARACTERS else REDACTED


def hasher(key: bytes) -> Callable[[str], str]:
    """A keyed hash: the same value looks the same, and nobody without the key can try values out."""

    def hashed(text: str) -> str:
        return "hmac:" + hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256")[:8].hex()

    return hashed
