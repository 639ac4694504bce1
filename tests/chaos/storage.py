"""What the hub has stored of a run's tenants: its log and its archive, read as an operator would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from millrace.lake.domain.archive import FOLDER, read_lines
from millrace.ledger.application.read_log import ReadLog
from millrace.ledger.domain.consumers import ARCHIVE_CONSUMER
from millrace.ledger.domain.names import Ledger, split_key
from millrace.operators.wiring.hub import Hub as Operator
from tests.chaos.history import Sight, tenants_in
from tests.e2e.conftest import Hub
from tests.e2e.lake import operator

AT_ONCE = 1_000


@dataclass
class Storage:
    """Made before the run: objects that were there by then are not its own."""

    hub: Hub
    tenants: Sequence[str]
    operator: Operator = field(init=False)
    earlier: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.operator = operator(self.hub)
        self.earlier = frozenset(listed.name for listed in self.operator.objects.list(FOLDER))

    def log(self) -> dict[str, list[Sight]]:
        ours = [ledger for ledger in self.operator.state.ledgers() if split_key(ledger.name)[1] in self.tenants]
        return {ledger.name: list(self._events(ledger)) for ledger in sorted(ours, key=lambda one: one.name)}

    def _events(self, ledger: Ledger) -> Iterator[Sight]:
        read, at = ReadLog(self.operator.log, self.operator.together), 0
        while pages := read(ledger, at, at + AT_ONCE, AT_ONCE):
            for page in pages:
                for event in page.events():
                    body = (event.record.body or b"").decode()
                    yield Sight(event.position, event.record.id, tenants_in(body))
            at = pages[-1].end

    def is_archived(self, log: Mapping[str, Sequence[Sight]]) -> bool:
        state = self.operator.state
        return all(
            state.marks(Ledger.to_read(ledger)).cursors.get(ARCHIVE_CONSUMER, 0) >= len(sights)
            for ledger, sights in log.items()
        )

    def archive(self) -> dict[str, list[Sight]]:
        found: dict[str, list[Sight]] = {}
        for listed in self.operator.objects.list(FOLDER):
            fetched = None if listed.name in self.earlier else self.operator.objects.get(listed.name)
            for line in read_lines(fetched.data) if fetched is not None else ():
                if line["tenant"] in self.tenants:
                    key = str(line["idempotency_key"])
                    sight = Sight(line["sequence_position"], key, tenants_in(line["payload"]))
                    found.setdefault(line["ledger"], []).append(sight)
        return found

    def findings(self) -> list[str]:
        """What `millrace archive verify` has to say against these tenants' ledgers."""
        found = self.operator.verify(lambda _what, _count: None)()
        kinds = {"missing": found.gaps, "repeated": found.repeated, "different": found.different}
        said = [
            f"{ledger}: {kind} {list(positions)}"
            for kind, by_ledger in kinds.items()
            for ledger, positions in by_ledger.items()
            if split_key(ledger)[1] in self.tenants
        ]
        return said + [f"{name}: {why}" for name, why in found.damaged.items() if name not in self.earlier]
