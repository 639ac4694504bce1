"""One run of a sync command: the server is resolved before a journal is opened or a target is known (D1)."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from millrace.delivery.domain.addresses import Reach
from millrace.delivery.domain.authority import Bearer, ResolvedSyncTarget, resolve, target_id, unresolved
from millrace.delivery.domain.targets import Blocked, Definition, Target
from millrace.delivery.ports.deliveries import DeliveryReceiver
from millrace.delivery.receivers import teamspace
from millrace.delivery.receivers.kind import Parts
from millrace.delivery.receivers.posting import Outgoing
from millrace.delivery.receivers.registry import RECEIVERS
from millrace.ledger.domain.errors import Rejected
from millrace_client.errors import Usage
from millrace_client.journal.config import Config, load
from millrace_client.journal.identity import TokenClaims, bearer, read_token, teamspace_gate
from millrace_client.journal.journals import Journals
from millrace_client.journal.sqlite.database import Database

TEAMSPACE = teamspace.KIND.name


def now_ms() -> int:
    return int(time.time() * 1000)


def outbound(reach: Reach) -> Outgoing:
    # Only what sends needs urllib3, and it is slow to import.
    from millrace.delivery.receivers.forgiving import Forgiving  # noqa: PLC0415

    return Forgiving(reach)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the commands take from outside; tests have their own."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Callable[[], int] = now_ms
    random: Callable[[], float] = random.random
    outbound: Callable[[Reach], Outgoing] = outbound


@dataclass(frozen=True, slots=True)
class JournalSession:
    config: Config
    authority: ResolvedSyncTarget
    token: str | None = field(repr=False)
    identity: TokenClaims | None
    around: Surroundings

    @property
    def journals(self) -> Journals:
        return Journals(self.config.home)

    @property
    def producer(self) -> Bearer:
        return Bearer(self.authority.user_id, self.authority.team_slug)

    @contextmanager
    def database(self) -> Iterator[Database]:
        """Our own journal. Connections are per thread: whoever works side by side opens their own."""
        with self.journals.open(self.producer) as database:
            yield database

    @property
    def definitions(self) -> Sequence[Definition]:
        """Today's targets; the Teamspace comes first, once its team is known."""
        return [*([self.teamspace] if self.teamspace else []), *self.config.targets]

    @property
    def teamspace(self) -> Definition | None:
        url, team = self.authority.resolved_server_url, self.authority.team_slug
        if url is None or team is None:
            return None
        return Definition(target_id(TEAMSPACE, url, team), TEAMSPACE, url, authorization=self.token or "")

    @property
    def unsigned(self) -> set[str]:
        """Targets of today whose requests could be signed, but that have no secret (D12)."""
        return {one.id for one in self.definitions if RECEIVERS[one.kind].signed and not one.secrets}

    def awaited(self, known: Sequence[Target]) -> list[Target]:
        """
        Configured targets that are not among the known ones: nothing was delivered to them yet.

        A server whose team is not known, because there is no token, is one of them: gc must not outrun a login.
        """
        ids, urls = {one.id for one in known}, {one.url for one in known if one.kind == TEAMSPACE}
        resolved = self.authority.resolved_server_url
        servers = [resolved] if resolved else [self.config.server_url, self.authority.env_server_url]
        new = [one.target() for one in self.config.targets if one.id not in ids]
        return new + [Target(TEAMSPACE, TEAMSPACE, url) for url in servers if url and url not in urls]

    def teamspace_gate(self) -> tuple[Blocked, str] | None:
        """Why the Teamspace gets nothing now, if so."""
        return teamspace_gate(self.authority, self.identity, self.around.environment, self.around.clock() / 1000)

    def receiver(self, one: Definition) -> DeliveryReceiver:
        kind = RECEIVERS[one.kind]
        parts = Parts(
            url=one.url,
            outbound=self.around.outbound(kind.reach_from_client(loopback=self.config.allow_loopback)),
            clock=self.around.clock,
            webhook=one.webhook,
            auth=one.authorization,
            signing=one.secrets,
            login_gate=self.teamspace_gate,
        )
        return kind.build(parts)


def open_session(
    home: Path, token: str | None, around: Surroundings, *, process_override: bool = False, lenient: bool = False
) -> JournalSession:
    """
    Raises `Usage` before any journal is opened and anything is sent.

    `lenient` is for what talks to nobody and must not be stopped by a disagreement: it resolves to no server.
    """
    config = load(home, around.environment)
    identity = read_token(token, config.team_slug)
    claims = bearer(token, config.team_slug)
    try:
        authority = resolve(
            configured=config.server_url,
            environment=around.environment,
            identity=claims,
            active_queue_scope=config.active_queue_scope(),
            home=str(home),
            process_override=process_override,
        )
    except Rejected as error:
        if not lenient:
            raise Usage(error.message) from error
        authority = unresolved(config.server_url, around.environment, claims)
    return JournalSession(config, authority, token, identity, around)
