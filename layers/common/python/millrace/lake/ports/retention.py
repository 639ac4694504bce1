"""What retention needs beside the log: rules, and who still needs events. Each docstring is the contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from millrace.lake.domain.retention_rules import Change, Rule, Rules, Scope
from millrace.ledger.domain.names import Ledger


@dataclass(frozen=True, slots=True)
class PolicyPage:
    """Rules by scope and partition; `after` is where the next page begins, None at the end."""

    rules: Sequence[tuple[Scope, str, Rule]]
    after: str | None


class Policies(Protocol):
    def get(self, scope: Scope) -> Mapping[str, Rule]:
        """The rules of this very scope by partition, strongly consistent."""

    def change(self, scope: Scope, change: Change) -> bool:
        """Apply the change as a whole; False, changing nothing, if its watermark is below the stored one."""

    def page(self, tenant: str, contract: str | None, after: str, limit: int) -> PolicyPage:
        """Some rules of a tenant, or of one contract's scopes, in order of contract, scope and partition. Raises
        `BadRequest` if `after` is no end of a page. The cost follows what is returned."""

    def of_tenant(self, tenant: str) -> Rules:
        """Every rule of a tenant, strongly consistent."""


class Holder(Protocol):
    def __call__(self, ledger: Ledger) -> int | None:
        """The last position of the ledger that may go as far as this holder is concerned; None if it holds nothing."""
