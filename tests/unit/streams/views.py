"""Views of a hub's stores that bad moments give: a pruner that dies, and a page that cannot be read yet."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.ledger.adapters.memory import MemoryLog, MemoryState
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Page
from millrace.ledger.ports import Run


class Died(Exception):
    """A process ends at this call."""


@dataclass
class DyingLog(MemoryLog):
    """A pruner's view: it dies when it has emptied so many pages."""

    lives: int = 0

    def replace(self, ledger: Ledger, page: Page) -> bool:
        if self.lives == 0:
            raise Died
        self.lives -= 1
        return super().replace(ledger, page)


@dataclass
class DyingState(MemoryState):
    def raise_floor(self, ledger: Ledger, to: int) -> None:
        raise Died


@dataclass
class LateLog(MemoryLog):
    """A reader's view, to which the page that starts at `hidden` is not there yet."""

    hidden: int = 0

    def read(self, ledger: Ledger, after: int, limit: int | None = None, through: int | None = None) -> Run:
        run = super().read(ledger, after, None, through)
        pages = [page for page in run.pages if page.first != self.hidden]
        return Run(pages[:limit], more=limit is not None and len(pages) > limit)

    def holding(self, ledger: Ledger, position: int) -> Page | None:
        page = super().holding(ledger, position)
        return self.holding(ledger, page.first - 1) if page is not None and page.first == self.hidden else page
