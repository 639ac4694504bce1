"""Expect a drain: whether a wake-up has to be sent, for one that is on its way or a drain that runs will do (D6).

However often its ledgers grow, a target has one wake-up on its way. No wish is lost: it is noted before the look that
finds another's wake-up or drain, and whoever serves the target reads the notes after it took that away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from millrace.delivery.domain.targets import Target
from millrace.delivery.ports.drains import Drains
from millrace.delivery.ports.targets import Agenda, Wake

MOST_NAMED = 20
"""Ledgers that a wake-up names, so that it fits into a message."""


@dataclass(frozen=True, slots=True)
class ExpectDrain:
    drains: Drains
    agenda: Agenda
    clock: Callable[[], int]

    def __call__(self, target: Target, wake: Wake) -> Wake | None:
        """The wake-up that the caller is to send; None: none. A target that nobody serves costs one write. Of many
        ledgers all are noted instead of named, so that one message will do."""
        many = len(wake.ledgers) > MOST_NAMED
        if many:
            self.agenda.note(target, wake.ledgers)
            wake = replace(wake, ledgers=())
        noted = many
        while True:
            expected = self.drains.expect(wake.tenant, wake.target_id, self.clock())
            if expected.mine:
                return wake
            if not noted:
                self.agenda.note(target, wake.ledgers)
                noted = True
            elif expected.drain is None or self.drains.ask(expected.drain):
                return None
