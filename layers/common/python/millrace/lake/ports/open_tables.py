"""The published tables as tools other than ours read them. Each docstring is the contract."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Shown:
    """What readers of a table see: its files by object name, their rows, and the run that brought the table there.

    `tag` names this very state to `show`.
    """

    files: frozenset[str]
    rows: int
    run: str
    tag: str


class DescribedColumn(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str:
        """Its type, as Spark and Athena spell it."""

    @property
    def meaning(self) -> str: ...


class OpenTables(Protocol):
    """A reader sees a table as one `show` left it, never half of one."""

    def shown(self, table: str) -> Shown | None:
        """What readers see now, or None if there is no such table."""

    def show(self, table: str, over: Shown | None, files: Collection[str], run: str) -> bool:
        """Replace what readers saw by exactly these files, in one step that names the run.

        False, changing nothing, if readers see something else than `over` by now. Files that are shown already are
        not read again.
        """

    def forget(self, table: str, before_ms: int) -> int:
        """Let go of what readers saw before this time; what they see now stays. Returns how many objects went."""
