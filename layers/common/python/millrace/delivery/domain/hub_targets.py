"""A hub's target as an operator puts it (D6): checked, kept and told, its secrets apart from everything else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from millrace.delivery.domain import signing
from millrace.delivery.domain.addresses import Reach, endpoint
from millrace.delivery.domain.families import texts
from millrace.delivery.domain.sources import Source, heard, sources_of
from millrace.delivery.domain.targets import Kind, Target, TargetState
from millrace.ledger.domain.errors import BadRequest, Unavailable
from millrace.ledger.domain.kinds import kind_of
from millrace.ledger.domain.names import join_key

BOTH_SIGN_MS = 24 * 3_600_000
"""How long a replaced signing secret goes on signing beside the new one."""
MOST_FAMILIES, MOST_TEXT_BYTES, MOST_URL_BYTES = 50, 4096, 2048

FIELDS: Mapping[str, type] = {
    "type": str,
    "url": str,
    "mode": str,
    "auth_secret": str,
    "signing_secret": str,
    "sources": list,
    "families": list,
    "start": str,
    "paused": bool,
}


class SecretsLost(Unavailable):
    """Sealed for another target, or under a secret of the deployment that is gone."""


@dataclass(frozen=True, slots=True)
class HubTarget:
    tenant: str
    id: str
    kind: Kind
    url: str
    webhook: bool
    sources: tuple[Source, ...]
    prefixes: frozenset[str]
    start_now: bool
    paused: bool
    created_ms: int
    revision: int = 1
    sealed: bytes = field(default=b"", repr=False)

    @property
    def key(self) -> str:
        """Unlike its id, unique among all tenants."""
        return join_key(self.tenant, self.id)

    def target(self) -> Target:
        return Target(self.key, self.kind.value, self.url, self.prefixes)

    def hears(self, ledger: str) -> bool:
        return heard(self.sources, ledger)

    def stored(self) -> str:
        kept = {
            "kind": self.kind.value,
            "url": self.url,
            "webhook": self.webhook,
            "sources": [[source.contract, source.scope] for source in self.sources],
            "prefixes": sorted(self.prefixes),
            "start_now": self.start_now,
            "paused": self.paused,
            "created_ms": self.created_ms,
            "revision": self.revision,
        }
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def of(cls, tenant: str, id_: str, stored: str, sealed: bytes) -> HubTarget:
        kept = json.loads(stored)
        kept["kind"] = Kind(kept["kind"])
        kept["sources"] = tuple(Source(*source) for source in kept["sources"])
        kept["prefixes"] = frozenset(kept["prefixes"])
        return cls(tenant, id_, **kept, sealed=sealed)

    def told(self, state: TargetState, secrets: SecretSet, now_ms: int) -> dict[str, Any]:
        """For an operator's eyes; of its secrets only that they are there."""
        return {
            "target_id": self.id,
            "type": self.kind.value,
            "url": self.url or None,
            "mode": "webhook" if self.webhook else "batch",
            "sources": [{"contract": source.contract, "scope": source.scope} for source in self.sources],
            "families": sorted(self.prefixes),
            "start": "now" if self.start_now else "retained",
            "paused": self.paused or bool(state.paused_why),
            "paused_why": "by an operator" if self.paused else state.paused_why or None,
            "has_auth_secret": bool(secrets.auth),
            "signing_secrets": len(secrets.signing_at(now_ms)),
            "revision": self.revision,
            "created_ms": self.created_ms,
            "failures_in_a_row": state.circuit.failures,
            "open_until_ms": state.circuit.open_until_ms or None,
            "blocked": state.blocked or None,
            "blocked_detail": state.blocked_detail or None,
        }


@dataclass(frozen=True, slots=True)
class SecretSet:
    """`signing`: each with the time it ends; the newest first, and that one has no end."""

    auth: str = field(default="", repr=False)
    signing: tuple[tuple[str, int | None], ...] = field(default=(), repr=False)

    def signing_at(self, now_ms: int) -> tuple[str, ...]:
        return tuple(secret for secret, until_ms in self.signing if until_ms is None or now_ms < until_ms)

    def changed(self, given: Mapping[str, Any], now_ms: int) -> SecretSet:
        """What is left out stays as it is; a new signing secret lets the old one sign for another day."""
        signed = self.signing
        new = given.get("signing_secret")
        if new is not None and (not signed or signed[0][0] != new):
            older = [
                (secret, min(until_ms or now_ms + BOTH_SIGN_MS, now_ms + BOTH_SIGN_MS))
                for secret, until_ms in signed
                if secret != new and (until_ms is None or now_ms < until_ms)
            ]
            signed = ((new, None), *older[:3])
        return replace(self, auth=given.get("auth_secret", self.auth), signing=signed)

    def text(self) -> str:
        return json.dumps({"auth": self.auth, "signing": self.signing})

    @classmethod
    def of(cls, text: str) -> SecretSet:
        kept = json.loads(text)
        return cls(kept["auth"], tuple((secret, until_ms) for secret, until_ms in kept["signing"]))


def check_target(
    tenant: str, target_id: str, given: Any, before: HubTarget | None, now_ms: int, *, loopback: bool
) -> HubTarget:
    """An operator's body as a target, its secrets not looked at. Raises `BadRequest`, naming the field."""
    check_target_id(target_id)
    if not isinstance(given, dict):
        raise BadRequest("A target is an object.", field="body", value_class=kind_of(given))
    for name, value in given.items():
        if name not in FIELDS:
            raise BadRequest(f"A target has the fields {', '.join(FIELDS)} and no other.", field=str(name)[:64])
        if not isinstance(value, FIELDS[name]):
            raise BadRequest(f"{name} has the wrong type.", field=name, value_class=kind_of(value))
    kind = Kind(_one_of("type", given.get("type"), [kind.value for kind in Kind]))
    webhook = _one_of("mode", given.get("mode", "batch"), ["batch", "webhook"]) == "webhook"
    if webhook and kind is not Kind.EXTERNAL:
        raise BadRequest("Only an external target is a webhook.", field="mode")
    families = texts(given.get("families", ()), "families")
    if len(families) > MOST_FAMILIES:
        raise BadRequest(f"families has at most {MOST_FAMILIES} prefixes.", field="families")
    start_now = _one_of("start", given.get("start", "retained"), ["retained", "now"]) == "now"
    return HubTarget(
        tenant,
        target_id,
        kind,
        _url(kind, given.get("url", ""), loopback=loopback),
        webhook,
        sources_of(given.get("sources")),
        families,
        start_now,
        given.get("paused", False),
        before.created_ms if before else now_ms,
        before.revision + 1 if before else 1,
    )


def check_secrets(kind: Kind, given: Mapping[str, Any], kept: SecretSet) -> None:
    """Raises `BadRequest`; no message shows a secret."""
    auth = given.get("auth_secret", "")
    if not (auth.isascii() and auth.isprintable() and len(auth) <= MOST_TEXT_BYTES):
        raise BadRequest(f"auth_secret is at most {MOST_TEXT_BYTES} printable characters.", field="auth_secret")
    if given.get("signing_secret") is not None:
        try:
            signing.key(given["signing_secret"])
        except BadRequest as error:
            raise BadRequest(error.message, field="signing_secret") from error
    if kind is Kind.TEAMSPACE and not kept.auth:
        raise BadRequest("A Teamspace target needs auth_secret, its bearer token.", field="auth_secret")
    if kind is Kind.EXTERNAL and not kept.signing:
        raise BadRequest("An external target needs signing_secret: its requests are signed.", field="signing_secret")


def check_target_id(target_id: str) -> None:
    if not target_id or len(target_id.encode()) > 128 or not target_id.isprintable():
        raise BadRequest("target_id is 1 to 128 bytes of printable characters.", field="target_id")


def _url(kind: Kind, url: str, *, loopback: bool) -> str:
    if not url:
        if kind is Kind.STUB:
            return url
        raise BadRequest(f"A target of type {kind.value} needs a url.", field="url")
    if len(url) > MOST_URL_BYTES:
        raise BadRequest(f"url is longer than {MOST_URL_BYTES} bytes.", field="url", max_bytes=MOST_URL_BYTES)
    endpoint(url, Reach(public=kind is not Kind.STUB, loopback=loopback))
    return url


def _one_of(name: str, value: Any, allowed: list[str]) -> str:
    if value not in allowed:
        raise BadRequest(f"{name} is one of {', '.join(allowed)}.", field=name)
    return str(value)
