"""Ledgers as an operator sees them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from millrace_client.operator.http import OperatorHttp, ledger_path


@dataclass(frozen=True, slots=True)
class ReaderLag:
    """How far a reader has got in a ledger."""

    position: int
    lag_events: int
    lag_seconds: float

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        return cls(told["position"], told["lag_events"], told["lag_seconds"])


@dataclass(frozen=True, slots=True)
class LedgerView:
    contract: str
    scope: str
    head: int
    floor: int
    events: int
    last_commit_ms: int | None
    stages: Mapping[str, ReaderLag]
    targets: Mapping[str, ReaderLag]
    """By the target's id."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        return cls(
            contract=told["contract"],
            scope=told["scope"],
            head=told["head"],
            floor=told["floor"],
            events=told["events"],
            last_commit_ms=told["last_commit_ms"],
            stages={name: ReaderLag.of(one) for name, one in told["stages"].items()},
            targets={one["target_id"]: ReaderLag.of(one) for one in told["targets"]},
        )


@dataclass(frozen=True, slots=True)
class Ledgers:
    http: OperatorHttp

    def list(self, contract: str, prefix: str | None = None, page_size: int | None = None) -> Iterator[LedgerView]:
        """All that the token reaches, in order of names; a page is asked for when it is needed."""
        after: str | None = None
        while True:
            query = {"contract": contract, "prefix": prefix, "after": after, "max": page_size}
            page = self.http.get("/v1/ledgers", query)
            yield from map(LedgerView.of, page["ledgers"])
            after = page["next"]
            if after is None:
                return

    def get(self, contract: str, scope: str) -> LedgerView:
        return LedgerView.of(self.http.get(ledger_path(contract, scope)))
