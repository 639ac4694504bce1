"""A hub's target as an operator puts it (D6): checked, kept and told, its secrets apart from everything else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from millrace.delivery.domain import signing
from millrace.delivery.domain.addresses import endpoint
from millrace.delivery.domain.given import Given
from millrace.delivery.domain.kinds import Kind, Kinds
from millrace.delivery.domain.sources import JOURNAL, Source, heard, several_journals, sources_of
from millrace.delivery.domain.targets import Target, TargetState
from millrace.ledger.domain.errors import BadRequest, Unavailable
from millrace.ledger.domain.kinds import kind_of
from millrace.ledger.domain.names import join_key
from millrace.ledger.domain.naming import MAX_NAME_BYTES, is_text, require_names
from millrace.ledger.domain.stored import known

BOTH_SIGN_MS = 24 * 3_600_000
"""How long a replaced signing secret goes on signing beside the new one."""
MOST_FAMILIES, MOST_TEXT_BYTES, MOST_URL_BYTES = 50, 4096, 2048

LEAST_RATE, MOST_RATE = 0.1, 10_000

FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "type": str,
    "url": str,
    "mode": str,
    "auth_secret": str,
    "signing_secret": str,
    "sources": list,
    "families": list,
    "start": str,
    "paused": bool,
    "max_per_second": (int, float, type(None)),
}


class SecretsLost(Unavailable):
    """Sealed for another target, or under a secret of the deployment that is gone."""


@dataclass(frozen=True, slots=True)
class HubTarget:
    tenant: str
    id: str
    kind: str
    url: str
    webhook: bool
    sources: tuple[Source, ...]
    prefixes: frozenset[str]
    start_now: bool
    paused: bool
    created_ms: int
    revision: int = 1
    scoped: bool = False
    """Ids of the journal go out with their team. Decided once: a receiver would take another id for another event."""
    sealed: bytes = field(default=b"", repr=False)
    max_per_second: float | None = None
    """Events that it is sent in a second, over all drains; None: as many as it takes."""

    @property
    def key(self) -> str:
        """Unlike its id, unique among all tenants."""
        return join_key(self.tenant, self.id)

    def target(self) -> Target:
        return Target(self.key, self.kind, self.url, self.prefixes, scoped=self.scoped)

    def settings(self) -> dict[str, Any]:
        """As an operator would put it, without its secrets."""
        given: dict[str, Any] = {
            "type": self.kind,
            "mode": "webhook" if self.webhook else "batch",
            "sources": [{"contract": source.contract, "scope": source.scope} for source in self.sources],
            "families": sorted(self.prefixes),
            "start": "now" if self.start_now else "retained",
            "paused": self.paused,
        }
        if self.max_per_second is not None:
            given["max_per_second"] = self.max_per_second
        return given | ({"url": self.url} if self.url else {})

    def hears(self, ledger: str) -> bool:
        return heard(self.sources, ledger)

    def stored(self) -> str:
        kept: dict[str, Any] = {
            "kind": self.kind,
            "url": self.url,
            "webhook": self.webhook,
            "sources": [[source.contract, source.scope] for source in self.sources],
            "prefixes": sorted(self.prefixes),
            "start_now": self.start_now,
            "paused": self.paused,
            "created_ms": self.created_ms,
            "revision": self.revision,
            "scoped": self.scoped,
        }
        if self.max_per_second is not None:
            kept["max_per_second"] = self.max_per_second
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def of(cls, tenant: str, id_: str, stored: str, sealed: bytes) -> HubTarget:
        kept = json.loads(stored)
        kept["sources"] = tuple(Source(contract, scope) for contract, scope, *_ in kept["sources"])
        kept["prefixes"] = frozenset(kept["prefixes"])
        return cls(tenant, id_, **known(cls, kept), sealed=sealed)

    def as_json(self, state: TargetState, secrets: SecretSet | None, kind: Kind, now_ms: int) -> dict[str, Any]:
        """For an operator's eyes; of its secrets only that they are there. None: they are lost, nothing is sent."""
        signing_secrets = len(secrets.signing_at(now_ms)) if secrets else 0
        return {
            "target_id": self.id,
            "type": self.kind,
            "url": self.url or None,
            "mode": "webhook" if self.webhook else "batch",
            "sources": [{"contract": source.contract, "scope": source.scope} for source in self.sources],
            "families": sorted(self.prefixes),
            "start": "now" if self.start_now else "retained",
            "journal_ids": "scoped" if self.scoped else "plain",
            "paused": self.paused or bool(state.paused_why),
            "max_per_second": self.max_per_second,
            "paused_why": "by an operator" if self.paused else state.paused_why or None,
            "has_auth_secret": bool(secrets and secrets.auth),
            "signing_secrets": signing_secrets,
            "unsigned": kind.signed and secrets is not None and not signing_secrets,
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
        """
        What is left out stays as it is, and empty means none from now on.

        A new signing secret lets the old one sign for another day.
        """
        signed = self.signing
        new = given.get("signing_secret")
        if new == "":
            signed = ()
        elif new is not None and (not signed or signed[0][0] != new):
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
        return cls(kept["auth"], tuple((secret, until_ms) for secret, until_ms, *_ in kept["signing"]))


def check_target(
    tenant: str, target_id: str, given: Any, before: HubTarget | None, now_ms: int, *, kinds: Kinds, loopback: bool
) -> HubTarget:
    """An operator's body as a target, its secrets not looked at. Raises `BadRequest`, naming the field."""
    if before is None:
        require_names(tenant=tenant, target_id=target_id)
    if not isinstance(given, dict):
        raise BadRequest("A target is an object.", field="body", value_class=kind_of(given))
    read = Given(given)
    read.check(FIELDS)
    kind = read.kind(kinds)
    webhook, families = read.webhook(kind), read.families()
    if len(families) > MOST_FAMILIES:
        raise BadRequest(f"families has at most {MOST_FAMILIES} prefixes.", field="families")
    sources = sources_of(given.get("sources"))
    return HubTarget(
        tenant=tenant,
        id=target_id,
        kind=kind.name,
        url=_url(kind, given.get("url", ""), loopback=loopback),
        webhook=webhook,
        sources=sources,
        prefixes=families,
        start_now=read.start_now(),
        paused=read.paused(),
        created_ms=before.created_ms if before else now_ms,
        revision=before.revision + 1 if before else 1,
        scoped=_scoped(sources, before),
        max_per_second=_rate(given.get("max_per_second")),
    )


def check_patch(given: Any) -> dict[str, Any]:
    """Some fields of a target. Raises `BadRequest`, naming the field."""
    if not isinstance(given, dict) or not given:
        rule = f"A change of a target is an object with one or more of its fields: {', '.join(FIELDS)}."
        raise BadRequest(rule, field="body", value_class=kind_of(given))
    Given(given).check(FIELDS)
    return given


def check_secrets(kind: Kind, given: Mapping[str, Any], kept: SecretSet) -> None:
    """Raises `BadRequest`; no message shows a secret."""
    auth = given.get("auth_secret", "")
    if not (auth.isascii() and auth.isprintable() and len(auth) <= MOST_TEXT_BYTES):
        raise BadRequest(f"auth_secret is at most {MOST_TEXT_BYTES} printable characters.", field="auth_secret")
    if given.get("signing_secret"):
        try:
            signing.key(given["signing_secret"])
        except BadRequest as error:
            raise BadRequest(error.message, field="signing_secret") from error
    if kind.needs_auth and not kept.auth:
        raise BadRequest(f"A target of type {kind.name} needs auth_secret, {kind.auth}.", field="auth_secret")


def check_lost(kind: Kind, given: Mapping[str, Any]) -> None:
    """A secret that cannot be opened any more is not dropped silently. Raises `BadRequest` if no other one is given."""
    if kind.signed and given.get("signing_secret") is None:
        rule = 'The old secrets cannot be opened any more: give signing_secret again ("" for none).'
        raise BadRequest(rule, field="signing_secret")


def check_moved(given: Mapping[str, Any], kept: SecretSet) -> None:
    """A secret belongs to the address it was given for. Raises `BadRequest` if one is left out that the old one had."""
    for name, present in (("auth_secret", kept.auth), ("signing_secret", kept.signing)):
        if present and given.get(name) is None:
            rule = f"The url is another one: give {name} again, it is not sent to a new address."
            raise BadRequest(rule, field=name)


def check_target_id(target_id: str) -> None:
    """Of one that exists already; what is new is asked for more."""
    if not target_id or not is_text(target_id) or len(target_id.encode()) > MAX_NAME_BYTES:
        raise BadRequest(f"target_id is 1 to {MAX_NAME_BYTES} bytes of UTF-8.", field="target_id")


def _scoped(sources: tuple[Source, ...], before: HubTarget | None) -> bool:
    """A target that has had events of a journal keeps the ids they are known for."""
    several = several_journals(sources)
    if before is None or not any(source.contract == JOURNAL for source in before.sources):
        return several or (before is not None and before.scoped)
    if several and not before.scoped and not several_journals(before.sources):
        rule = "This target gets the plain ids of one team's journal; ids of several would clash. Make another target."
        raise BadRequest(rule, field="sources")
    return before.scoped


def _rate(given: Any) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not LEAST_RATE <= given <= MOST_RATE:
        rule = f"max_per_second is a number from {LEAST_RATE} to {MOST_RATE}, or null for none."
        raise BadRequest(rule, field="max_per_second", value_class=kind_of(given))
    return float(given)


def _url(kind: Kind, url: str, *, loopback: bool) -> str:
    if not url and kind.needs_url:
        raise BadRequest(f"A target of type {kind.name} needs a url.", field="url")
    if len(url) > MOST_URL_BYTES:
        raise BadRequest(f"url is longer than {MOST_URL_BYTES} bytes.", field="url", max_bytes=MOST_URL_BYTES)
    if url:
        endpoint(url, kind.reach(loopback=loopback))
    return url
