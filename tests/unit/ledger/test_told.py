"""What the core tells of: through one callable, quiet by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryState, in_turn
from millrace.ledger.application.commit import APPEND_TRIES, CLAIM_TRIES, Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.errors import Contention, Throttled
from millrace.ledger.domain.metrics import Metric
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Origin, Page, Record
from millrace.ledger.ports import Claimed, Claims

LEDGER = Ledger.of("sync", "default", "busy")
DRAFT = Draft("mine", b"d" * 32, b"{}", ("p",))
ORIGIN = Origin("C1")


@dataclass(slots=True)
class Overtaken:
    """A log in which somebody else is first, a number of times."""

    times: int
    log: MemoryLog = field(default_factory=MemoryLog)

    def append(self, ledger: Ledger, page: Page) -> Page | None:
        if self.times:
            self.times -= 1
            other = Record(f"other-{page.first}", b"o" * 32, b"{}", ("p",))
            self.log.append(ledger, Page(page.first, (other,), 0, ORIGIN, b"other"))
        return self.log.append(ledger, page)

    def __getattr__(self, name: str) -> object:
        return getattr(self.log, name)


class Failing(MemoryClaims):
    def create(self, _ledger: Ledger, ids: Sequence[str], _seen: int) -> Claimed:
        return Claimed(frozenset(), frozenset(), frozenset(ids))


def commit(log: object, claims: Claims, heard: list[tuple[Metric, str, int]]) -> Commit:
    def tell(ledger: Ledger, counts: Mapping[Metric, int]) -> None:
        heard.extend((metric, ledger.contract, count) for metric, count in counts.items())

    return Commit(
        claims=claims,
        log=log,  # type: ignore[arg-type]
        state=MemoryState(),
        heads=Heads(lambda: 0),
        together=in_turn,
        clock=lambda: 0,
        nonce=lambda: b"mine",
        pause=lambda _attempt: None,
        tell=tell,
    )


def test_a_writer_that_loses_the_race_for_a_page_tells_of_it() -> None:
    heard: list[tuple[Metric, str, int]] = []
    (outcome,) = commit(Overtaken(3), MemoryClaims(), heard)(LEDGER, [DRAFT], ORIGIN)
    assert outcome.position == 4
    assert heard == [(Metric.PUTS_LOST, "sync", 1)] * 3


def test_a_writer_that_gives_up_tells_of_it() -> None:
    heard: list[tuple[Metric, str, int]] = []
    with pytest.raises(Contention):
        commit(Overtaken(APPEND_TRIES), MemoryClaims(), heard)(LEDGER, [DRAFT], ORIGIN)
    assert heard[-1] == (Metric.COMMITS_GIVEN_UP, "sync", 1)


def test_claims_that_storage_did_not_answer_for_are_told_of() -> None:
    heard: list[tuple[Metric, str, int]] = []
    with pytest.raises(Throttled):
        commit(MemoryLog(), Failing(), heard)(LEDGER, [DRAFT], ORIGIN)
    assert heard == [(Metric.CLAIMS_RETRIED, "sync", 1)] * CLAIM_TRIES
