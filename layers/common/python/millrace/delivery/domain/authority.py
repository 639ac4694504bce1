"""Target authority: which server everything of one process talks to, decided once and before anything else (D1)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import join_key

URL_VARIABLE = "SPEC_KITTY_SAAS_URL"
HUB_VARIABLE = "MILLRACE_URL"
"""Another name for the same: whoever sets both has to name one server."""
ENABLE_VARIABLE = "SPEC_KITTY_ENABLE_SAAS_SYNC"
OFF = frozenset({"0", "false", "no", "off"})


class TargetDisagreement(BadRequest):
    """Environment and configuration name different servers."""


@dataclass(frozen=True, slots=True)
class ResolvedSyncTarget:
    """Whatever derives a scope, authenticates, connects or prints takes its URL from here."""

    configured_server_url: str | None
    env_server_url: str | None
    override_mode: str
    """`none`: the configuration decides. `setup_only`: only the environment names a server. `process_override`."""
    resolved_server_url: str | None
    user_id: str | None
    team_slug: str | None
    derived_queue_scope: str | None
    queue_db_path: str | None
    active_queue_scope_status: str
    """`absent`, `matches` or `stale_non_authoritative`: a diagnosis, never an input."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who the token says we are, and so whose events are captured and sent. A part may be unknown."""

    user_id: str | None = None
    team_slug: str | None = None

    @property
    def parts(self) -> tuple[str, str]:
        return (self.user_id or "").strip(), (self.team_slug or "").strip()

    @property
    def known(self) -> bool:
        return any(self.parts)

    def may_take_over(self, other: Bearer) -> bool:
        """
        Whether what `other` captured is ours: every known part of `other` is the same here, and one is unknown.

        So one user's or team's facts never become another's, and those of nobody go to the first who is somebody.
        """
        pairs = list(zip(self.parts, other.parts, strict=True))
        return self.parts != other.parts and all(theirs in ("", ours) for ours, theirs in pairs)


def resolve(
    *,
    configured: str | None,
    environment: Mapping[str, str],
    identity: Bearer,
    active_queue_scope: str | None,
    home: str,
    process_override: bool = False,
    named: str | None = None,
) -> ResolvedSyncTarget:
    """
    `named`: the server that this very call names (`--url`). It overrides everything else, for the whole process.

    Raises `TargetDisagreement`, or `BadRequest` for what is no address.
    """
    env = environment_url(environment)
    if named is None:
        mode, url = _settled(configured, environment, process_override=process_override)
    elif process_override:
        raise BadRequest("Give --url or --process-override, not both.", field="url")
    else:
        mode, url = "process_override", normal(named, "--url")
    scope = queue_scope(url, identity) if url else None
    return ResolvedSyncTarget(
        configured or None,
        env,
        mode,
        url,
        identity.user_id,
        identity.team_slug,
        scope,
        f"{home}/queues/queue-{short_digest(scope)}.db" if scope else None,
        _active(active_queue_scope, scope),
    )


def unresolved(configured: str | None, environment: Mapping[str, str], identity: Bearer) -> ResolvedSyncTarget:
    """What can be shown when there is no answer: the inputs, and no server."""
    env = environment_url(environment)
    return ResolvedSyncTarget(configured, env, "none", None, identity.user_id, identity.team_slug, None, None, "absent")


def environment_url(environment: Mapping[str, str]) -> str | None:
    """As it is written."""
    return environment.get(URL_VARIABLE) or environment.get(HUB_VARIABLE) or None


def _settled(
    configured: str | None, environment: Mapping[str, str], *, process_override: bool
) -> tuple[str, str | None]:
    """The mode, and the server that configuration and environment agree on, or the environment's if it overrides."""
    from_config = normal(configured, "[sync].server_url") if configured else None
    found = {name: normal(environment[name], name) for name in (URL_VARIABLE, HUB_VARIABLE) if environment.get(name)}
    name, from_env = next(iter(found.items()), (URL_VARIABLE, None))
    if len(set(found.values())) > 1:
        said = " and ".join(f"{variable} is {url}" for variable, url in found.items())
        raise TargetDisagreement(f"{said}. Make them agree, or unset one.", field=HUB_VARIABLE)
    if process_override:
        if from_env is None:
            raise BadRequest(f"--process-override needs {URL_VARIABLE} to be set.", field=URL_VARIABLE)
        return "process_override", from_env
    if from_config and from_env and from_config != from_env:
        raise TargetDisagreement(
            f"{name} is {from_env}, but [sync].server_url is {from_config}. Make them agree, or pass "
            "--process-override to use the environment's everywhere.",
            field=name,
        )
    return "setup_only" if from_env and not from_config else "none", from_config or from_env


def queue_scope(url: str, identity: Bearer) -> str:
    """`{url}|{user}|{team}`, each trimmed and in lower case, the URL without its last slash, as the tools in use do."""
    parts = [part.strip().lower() for part in (url, identity.user_id or "", identity.team_slug or "")]
    return "|".join([parts[0].removesuffix("/"), *parts[1:]])


def short_digest(text: str) -> str:
    """16 hex digits, for the name of a file."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def target_id(kind: str, url: str, team_slug: str | None) -> str:
    """What the delivery rows of a server are filed under: another server or team is another target."""
    key = join_key(url, team_slug or "")
    return f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def normal(url: str, field: str) -> str:
    """One spelling per server: case of the host, default port and a closing slash do not make another target."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise BadRequest(f"{field} is not an address.", field=field) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or parts.query:
        raise BadRequest(f"{field} is not an address like https://hub.example.", field=field)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    default = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}{'' if port in (None, default) else f':{port}'}{parts.path.rstrip('/')}"


def sync_enabled(environment: Mapping[str, str]) -> bool:
    return environment.get(ENABLE_VARIABLE, "1").strip().lower() not in OFF


def _active(stored: str | None, scope: str | None) -> str:
    if not stored:
        return "absent"
    return "matches" if stored.strip().lower() == scope else "stale_non_authoritative"
