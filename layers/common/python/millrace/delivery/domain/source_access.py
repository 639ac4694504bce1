"""Who may name a source: whoever may read everything that it stands for (D6). Every door of targets asks here."""

from __future__ import annotations

from collections.abc import Iterable

from millrace.delivery.domain.sources import Source
from millrace.ledger.domain.access import PARTITION_OF, Identity
from millrace.ledger.domain.errors import Forbidden

EVERYTHING = (Source("sync", "*"), *(Source(contract, "*") for contract in PARTITION_OF))


def require_sources(identity: Identity, sources: Iterable[Source]) -> None:
    """Raises `Forbidden` for the first source that stands for more than the bearer may read."""
    for number, source in enumerate(sources):
        if not may_read(identity, source):
            rule = "The token does not reach all that this source stands for."
            raise Forbidden(rule, field=f"sources[{number}]")


def may_read(identity: Identity, source: Source) -> bool:
    """A target gets events of every partition, so that of a project the bearer has to see everything."""
    if source.contract not in PARTITION_OF:
        return identity.sees_everything and identity.covers_project(source.scope)
    runtime_or_whole = source.scope.partition("/")[0] if source.contract == "streams" else source.scope
    return identity.covers(PARTITION_OF[source.contract](runtime_or_whole))
