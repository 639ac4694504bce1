"""The counts that status shows, for the local journal in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millrace.delivery.domain.families import Family
from millrace.delivery.domain.states import Status
from millrace.delivery.domain.targets import Target
from millrace_client.journal.ports import JournalCounts, TargetCounts
from millrace_client.journal.sqlite import rows
from millrace_client.journal.sqlite.database import Database


@dataclass(frozen=True, slots=True)
class SqliteOverview:
    database: Database

    def journal(self) -> JournalCounts:
        row = self.database.connection.execute(
            "SELECT count(*), count(b.position), coalesce(sum(iif(b.position IS NULL, 0, j.size)), 0), "
            "count(j.superseded_by), count(iif(j.family = 'local_only', 1, NULL)), "
            "count(iif(j.removed_how = 'archive', 1, NULL)), min(iif(b.position IS NULL, NULL, j.captured_ms)) "
            "FROM event_journal j LEFT JOIN event_body b USING (position)"
        ).fetchone()
        return JournalCounts(*row)

    def targets(self) -> Sequence[TargetCounts]:
        return [self._counts(target) for target in rows.seen_targets(self.database.connection)]

    def _counts(self, target: Target) -> TargetCounts:
        connection = self.database.connection
        statuses = connection.execute(
            "SELECT status, count(*) FROM delivery_ledger WHERE target = ? GROUP BY status", (target.id,)
        )
        state = connection.execute(f"SELECT {rows.STATE} FROM delivery_target WHERE id = ?", (target.id,)).fetchone()
        counts = {Status(status): count for status, count in statuses}
        fresh = 0 if target.kind == rows.UNKNOWN_TARGET else self.unattempted(target)
        return TargetCounts(target, rows.state(state), counts, fresh, self.archived(target))

    def unattempted(self, target: Target) -> int:
        """Events the target wants and was never offered. They are all behind its cursor, so it costs what it counts."""
        found = self.database.connection.execute(
            "SELECT j.event_type, j.family, count(*) FROM event_journal j JOIN event_body b USING (position) "
            "LEFT JOIN delivery_ledger d ON d.target = ?1 AND d.position = j.position "
            "WHERE j.position > coalesce((SELECT max(through, start_at) FROM delivery_target WHERE id = ?1), 0) "
            "AND j.superseded_by IS NULL AND d.position IS NULL GROUP BY 1, 2",
            (target.id,),
        )
        return sum(count for event_type, family, count in found if target.wants(event_type, Family(family)))

    def waiting(self, target: Target) -> int:
        """Deliveries that will be tried again by themselves."""
        [count] = self.database.connection.execute(
            "SELECT (SELECT count(*) FROM delivery_ledger INDEXED BY ledger_transient JOIN event_body USING (position) "
            "WHERE target = ?1 AND status = 'transient') + (SELECT count(*) FROM delivery_ledger "
            "INDEXED BY ledger_waiting JOIN event_body USING (position) "
            "WHERE target = ?1 AND status IN ('pending', 'rejected'))",
            (target.id,),
        ).fetchone()
        return int(count)

    def archived(self, target: Target) -> int:
        """Events the target has yet to get and whose bytes are in an archive. It costs what it counts."""
        [count] = self.database.connection.execute(
            "SELECT (SELECT count(*) FROM delivery_missed WHERE target = ?1) + (SELECT count(*) FROM delivery_ledger d "
            "INDEXED BY ledger_transient JOIN event_journal j USING (position) WHERE d.target = ?1 "
            "AND d.status = 'transient' AND j.removed_how = 'archive') + (SELECT count(*) FROM delivery_ledger d "
            "INDEXED BY ledger_waiting JOIN event_journal j USING (position) WHERE d.target = ?1 "
            "AND d.status IN ('pending', 'rejected') AND j.removed_how = 'archive')",
            (target.id,),
        ).fetchone()
        return int(count)
