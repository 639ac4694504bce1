"""What compaction has to do, in plain Python: dictionaries and sorts. Spark's answer must equal it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from millrace.lake.domain.registry import FALLBACK, Registry
from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.instants import instant
from millrace.realtime.domain.transcript import materialise

Row = dict[str, Any]
Archive = Mapping[str, Sequence[Row]]


@dataclass
class Model:
    registry: Registry
    published: dict[tuple[str, str], Row] = field(default_factory=dict)
    quarantined: list[tuple[str, str | None]] = field(default_factory=list)

    def run(self, archive: Archive) -> None:
        """One run over these new objects."""
        accepted: list[Row] = []
        for name, lines in archive.items():
            for line in lines:
                judged = self._judge(line)
                if judged is None:
                    self.quarantined.append((name, line["idempotency_key"]))
                else:
                    accepted.append({**judged, "object": name})
        for row in sorted(accepted, key=order):
            self.published.setdefault((row["ledger"], row["idempotency_key"]), row)

    def _judge(self, line: Row) -> Row | None:
        contract = line["ledger"].split("#")[0]
        known = self.registry.find(contract, line["event_type"])
        if known is not None and known.knows(line["event_version"]):
            return {**line, "filled": False}
        if (known.policy if known else self.registry.policy) != FALLBACK:
            return None
        defaults = known.defaults(line["event_version"]) if known else {}
        return {**line, "payload": {**defaults, **line["payload"]}, "filled": True}

    def events(self) -> list[Row]:
        return by_text(
            {
                "ledger": row["ledger"],
                "contract": row["ledger"].split("#")[0],
                "tenant": row["tenant"],
                "sequence_position": row.get("sequence_position"),
                "event_type": row["event_type"],
                "event_version": row["event_version"],
                "idempotency_key": row["idempotency_key"],
                "occurred_us": instant(row["occurred_at"]) // 1000,
                "committed_ms": row["committed_at"],
                "source": row["source"],
                "trace_id": row.get("trace_id"),
                "client_id": row.get("client_id"),
                "partitions": row["partitions"],
                "payload": row["payload"],
                "filled": row["filled"],
                "archive_object": row["object"],
            }
            for row in self.published.values()
        )

    def transcripts(self) -> list[Row]:
        sessions: dict[str, list[Row]] = {}
        for row in self.published.values():
            if row["ledger"].startswith("realtime#"):
                told = {**row["payload"], "sequence": row.get("sequence_position")}
                sessions.setdefault(row["ledger"], []).append(told)
        return by_text(
            {
                "ledger": ledger,
                "tenant": ledger.split("#")[1],
                "utterance_id": line["utteranceId"],
                "speaker": line["speaker"],
                "text": line["text"],
                "start_ms": line["startMs"],
                "end_ms": line["endMs"],
                "final": line["final"],
                "event_id": line["eventId"],
                "sequence_position": line["sequence"],
                "ts": line["ts"],
            }
            for ledger, events in sessions.items()
            for line in materialise(events)
        )

    def statistics(self) -> list[Row]:
        days: dict[tuple[str, int], list[Row]] = {}
        for row in self.published.values():
            days.setdefault((row["ledger"], row["committed_at"] // 86_400_000), []).append(row)
        return by_text(
            {
                "ledger": ledger,
                "day": (date(1970, 1, 1) + timedelta(days=day)).isoformat(),
                "events": len(rows),
                "payload_bytes": sum(len(canonical(row["payload"])) for row in rows),
                "first_position": min((p for row in rows if (p := row.get("sequence_position"))), default=None),
                "last_position": max((p for row in rows if (p := row.get("sequence_position"))), default=None),
            }
            for (ledger, day), rows in days.items()
        )


def order(row: Row) -> tuple[Any, ...]:
    """C4, and the rest of the row where even that is equal."""
    position = row.get("sequence_position")
    ties = [canonical(row["payload"]), row["event_type"], row["event_version"], row["committed_at"], row["source"]]
    return (position is None, position or 0, row["object"], instant(row["occurred_at"]) // 1000, *ties)


def by_text(rows: Any) -> list[Row]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True, ensure_ascii=False))
