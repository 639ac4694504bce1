"""What an operator configured: `config.toml` in the home folder, read once and checked before anything is done."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millrace.delivery.domain import signing
from millrace.delivery.domain.families import Families, Family, families
from millrace.delivery.domain.kinds import Kind
from millrace.delivery.domain.targets import Definition, definition
from millrace.delivery.receivers.registry import RECEIVERS
from millrace.ledger.domain.errors import BadRequest, Rejected
from millrace_client.errors import Usage

FILE = "config.toml"
ACTIVE_SCOPE_FILE = "active_queue_scope"
SERVER = frozenset({"server_url", "team_slug"})


@dataclass(frozen=True, slots=True)
class Config:
    home: Path
    server_url: str | None = None
    team_slug: str | None = None
    allow_loopback: bool = False
    families: Families = field(default_factory=Families)
    targets: Sequence[Definition] = ()

    @property
    def lock_path(self) -> Path:
        """Of all journals of the home folder: who drains one may take over another."""
        return self.home / "event_journal.lock"

    def active_queue_scope(self) -> str | None:
        """Left behind by the old queue; only ever compared."""
        try:
            return (self.home / ACTIVE_SCOPE_FILE).read_text().strip() or None
        except (OSError, UnicodeDecodeError):
            return None


def load(home: Path, environment: Mapping[str, str] = os.environ) -> Config:
    """Raises `Usage`, naming the setting."""
    try:
        return _config(home, _sync_settings(home), environment)
    except Rejected as error:
        raise Usage(f"{home / FILE}: {error.message}") from error


def load_server(home: Path) -> Config:
    """Only which server and team are configured: a mistake in a target does not concern those who only ask for it."""
    settings = _sync_settings(home)
    if isinstance(settings, Mapping):
        settings = {name: settings[name] for name in SERVER & settings.keys()}
    try:
        return _config(home, settings, {})
    except Rejected as error:
        raise Usage(f"{home / FILE}: {error.message}") from error


def load_to_capture(home: Path, environment: Mapping[str, str] = os.environ) -> tuple[Config, str]:
    """As `load`, but a configuration that cannot be read stops nobody from capturing; the second is what is wrong."""
    try:
        return load(home, environment), ""
    except Usage as error:
        return Config(home, families=Families(otherwise=Family.UNDECIDED)), str(error)


def _sync_settings(home: Path) -> Any:
    file = home / FILE
    try:
        return tomllib.loads(file.read_text(encoding="utf-8")).get("sync", {}) if file.exists() else {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Usage(f"Cannot read {file}: {error}") from error


def _config(home: Path, sync: Any, environment: Mapping[str, str]) -> Config:
    if not isinstance(sync, Mapping):
        raise BadRequest("[sync] is a table of settings.", field="sync")
    for name, kind in (("server_url", str), ("team_slug", str), ("allow_loopback", bool), ("targets", Mapping)):
        if name in sync and not isinstance(sync[name], kind):
            raise BadRequest(f"sync.{name} has the wrong type.", field=f"sync.{name}")
    loopback = sync.get("allow_loopback", False)
    given = sync.get("targets", {})
    return Config(
        home,
        sync.get("server_url") or None,
        sync.get("team_slug") or None,
        loopback,
        families(sync.get("families", {}), sync.get("opt_out", [])),
        [_target(name, settings, loopback, environment) for name, settings in given.items()],
    )


def _target(name: str, settings: Any, loopback: bool, environment: Mapping[str, str]) -> Definition:
    if not isinstance(settings, Mapping):
        raise BadRequest(f"targets.{name} is a table of settings.", field=f"targets.{name}")
    settings = {key: _from_environment(value, environment) for key, value in settings.items()}
    made = definition(name, settings, RECEIVERS, loopback=loopback)
    _check(made, RECEIVERS[made.kind])
    return made


def _check(made: Definition, kind: Kind) -> None:
    """What this type of target needs on a client."""
    where = f"targets.{made.id}"
    if kind.is_login:
        raise BadRequest("The Teamspace is [sync].server_url, not one of the targets.", field=f"{where}.type")
    if kind.needs_url and not made.url:
        raise BadRequest(f"{where} needs a url.", field=where)
    for secret in made.secrets if kind.signed else ():
        signing.key(secret)


def _from_environment(value: Any, environment: Mapping[str, str]) -> Any:
    """`env:NAME` stands for what that variable holds, so that secrets need not be in the file."""
    if isinstance(value, list):
        return [_from_environment(one, environment) for one in value]
    if not isinstance(value, str) or not value.startswith("env:"):
        return value
    found = environment.get(value[4:])
    if not found:
        raise BadRequest(f"The variable {value[4:]} is not set.", field=value)
    return found
