"""Rebuild claims: make them fit a log that was restored to another time than they were.

A claim may know a page end that the log has lost: whoever committed its id would leave a hole, or not find the id
again. And an id in the log may have lost its claim: it could be committed once more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from millrace.ledger.application.heads import find_head
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger, bucket_last, bucket_of
from millrace.ledger.domain.page import Page, contiguous
from millrace.ledger.ports import Log
from millrace.operators.domain.rebuilt import Rebuilt
from millrace.operators.ports import ClaimScan, Key, Scanned, StoredClaim


@dataclass(frozen=True, slots=True)
class RebuildClaims:
    log: Log
    claims: ClaimScan
    heads: dict[str, int] = field(default_factory=dict)
    """By ledger: a page end that the log has."""

    def scan(self, segment: int, segments: int, after: Key | None) -> Scanned[StoredClaim]:
        return self.claims.scan(segment, segments, after)

    def check(self, claim: StoredClaim, report: Rebuilt) -> None:
        """Lower a claim that knows more than the log has. That only makes whoever uses it look at more pages."""
        head = self.heads.get(claim.ledger, 0)
        if claim.seen > head:
            head = find_head(self.log, Ledger.to_read(claim.ledger), head)
            self.heads[claim.ledger] = head
        if claim.seen > head and self.claims.lower(claim, head):
            report.count("claims lowered")

    def complete(self, ledger: Ledger, head: int, report: Rebuilt) -> None:
        """Give ids in the log their claims back. The newest are lost first, so it ends at a bucket that has them."""
        for bucket in range(bucket_of(head), -1, -1):
            start = bucket_last(bucket - 1)
            pages = contiguous(self.log.read(ledger, start).pages, start)
            if not sum([self._put_back(ledger, page, report) for page in pages]):
                return

    def _put_back(self, ledger: Ledger, page: Page, report: Rebuilt) -> int:
        missing = self.claims.missing(ledger, [record.id for record in page.records])
        if not missing:
            return 0
        claimed = self.claims.create(ledger, missing, page.first - 1)
        if claimed.failed:
            raise Unavailable("Storage did not take every claim.", ledger=ledger.name)
        report.count("claims put back", len(claimed.created))
        return len(missing)
