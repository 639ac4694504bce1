"""Markers: shared map markers with revisions; every change is an event of the runtime's stream `markers` (M1–M5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from millrace.ledger.application.failures import Failures
from millrace.ledger.domain.access import CONSUMER, PRODUCER, Identity
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import join_key, stream_ledger
from millrace.ledger.ports import KeyRing
from millrace.streams.application.announce import Announce, Content
from millrace.streams.application.runtime_access import require_negotiated, require_runtime
from millrace.streams.application.tell_policy import say_nothing
from millrace.streams.domain.cursor import marker_scope, seal, unseal
from millrace.streams.domain.envelope import MARKER_STREAM, check_name, check_size, invalid, make_draft
from millrace.streams.domain.errors import Absent, SdkError
from millrace.streams.domain.marker import (
    CREATED,
    DELETED,
    MOVED,
    check_create,
    check_marker_id,
    check_move,
    check_revision,
    marker_event,
    stale,
)
from millrace.streams.domain.negotiate import NAMESPACE, StreamLimits
from millrace.streams.domain.privacy import Policy, Sifted
from millrace.streams.ports import Announcement, Intent, Intents, Rows, Runtimes, VersionedRow

MAX_LISTED, DEFAULT_LISTED = 500, 100
SCANNED = 1_000
"""Rows one page of the list looks at, deleted ones and other topics included."""


@dataclass(frozen=True, slots=True)
class ManageMarkers:
    announce: Announce
    rows: Rows
    intents: Intents
    runtimes: Runtimes
    keys: KeyRing
    policy: Policy
    hasher: Callable[[str], Callable[[str], str]]
    clock: Callable[[], int]
    new_id: Callable[[], str]
    tell_policy: Callable[[Identity], None] = say_nothing
    """Called before the policy is applied."""

    def create(self, identity: Identity, runtime_id: str, sent: Any) -> dict[str, Any]:
        limits = self._limits(identity, runtime_id)
        self.tell_policy(identity)
        checked = check_create(self.policy.without_secrets(sent), limits)
        marker: dict[str, Any] = self.policy.sift(checked, self.hasher(identity.tenant)).clean
        marker_id = marker.setdefault("marker_id", self.new_id())

        def next_record(row: VersionedRow | None) -> dict[str, Any]:
            if row is not None and not row.content["deleted"]:
                raise stale(marker_id, 0, row.version)
            return marker

        return {"accepted": True, "marker": self._write(identity, runtime_id, marker_id, limits, CREATED, next_record)}

    def move(self, identity: Identity, runtime_id: str, marker_id: str, sent: Any) -> dict[str, Any]:
        limits = self._limits(identity, runtime_id)
        self.tell_policy(identity)
        checked, expected = check_move(self._without_secret_extensions(sent), limits)
        changes: dict[str, Any] = self.policy.sift(checked, self.hasher(identity.tenant)).clean

        def next_record(row: VersionedRow | None) -> dict[str, Any]:
            return {**_live(marker_id, row, expected), **changes}

        return {"accepted": True, "marker": self._write(identity, runtime_id, marker_id, limits, MOVED, next_record)}

    def delete(self, identity: Identity, runtime_id: str, marker_id: str, expected: Any) -> dict[str, Any]:
        limits = self._limits(identity, runtime_id)
        expected = check_revision(expected)

        def next_record(row: VersionedRow | None) -> Mapping[str, Any]:
            return _live(marker_id, row, expected)

        try:
            record = self._write(identity, runtime_id, marker_id, limits, DELETED, next_record)
        except Absent:
            return {"accepted": False, "marker_id": marker_id}
        return {"accepted": True, "marker_id": marker_id, "revision": record["revision"]}

    def list(
        self, identity: Identity, runtime_id: str, cursor: str | None, limit: int | None, topic_id: str | None
    ) -> dict[str, Any]:
        identity.require(CONSUMER)
        require_runtime(identity, runtime_id)
        if topic_id is not None:
            check_name("topic_id", topic_id)
        limit = DEFAULT_LISTED if limit is None else limit
        if not 1 <= limit <= MAX_LISTED:
            raise invalid("max", f"max must be an integer from 1 to {MAX_LISTED}.", limit)
        scope = marker_scope(NAMESPACE, identity.tenant, runtime_id, topic_id)
        after = "" if cursor is None else unseal(self.keys.find, scope, cursor).decode("utf-8", "replace")
        rows = self.rows.page(marker_group(identity.tenant, runtime_id), after, SCANNED)
        records, last = [], None
        for key, row in rows:
            last = key
            record = row.content["record"]
            if not row.content["deleted"] and topic_id in (None, record.get("topic_id")):
                records.append(record)
                if len(records) == limit:
                    break
        more = last is not None and (len(rows) == SCANNED or last != rows[-1][0])
        following = seal(self.keys.current(), scope, str(last).encode()) if more else None
        return {"markers": records, "next_cursor": following}

    def _without_secret_extensions(self, sent: Any) -> Any:
        """A move has no place for a secret but there: elsewhere it is an unknown field, which is refused."""
        if not isinstance(sent, dict) or "extensions" not in sent:
            return sent
        return {**sent, "extensions": self.policy.without_secrets(sent["extensions"])}

    def _limits(self, identity: Identity, runtime_id: str) -> StreamLimits:
        """Those of the writer's session."""
        identity.require(PRODUCER)
        require_runtime(identity, runtime_id)
        return require_negotiated(self.runtimes.session(identity.tenant, runtime_id, identity.client_id)).limits

    def _write(
        self,
        identity: Identity,
        runtime_id: str,
        marker_id: str,
        limits: StreamLimits,
        kind: str,
        next_record: Callable[[VersionedRow | None], Mapping[str, Any]],
    ) -> dict[str, Any]:
        """An intent first: if this process dies on the way, somebody else sees to the event.

        It is left once the change is known to be allowed; a refused one writes nothing.
        """
        check_marker_id(marker_id)
        group = marker_group(identity.tenant, runtime_id)
        ledger = stream_ledger(identity.tenant, runtime_id, MARKER_STREAM)
        intent, left = Intent(group, marker_id, self.new_id()), False

        def decide(row: VersionedRow | None) -> tuple[Content, Announcement]:
            nonlocal left
            revision = row.version + 1 if row else 1
            record = {**next_record(row), "revision": revision, "updated_ts_ms": self.clock()}
            event = marker_event(runtime_id, kind, record)
            check_size(event["payload"], limits, "marker")
            announcement = Announcement(ledger, make_draft(Sifted(event, event)), identity.client_id)
            if not left:
                self.intents.leave(intent, self.clock())
                left = True
            return {"record": record, "deleted": kind == DELETED}, announcement

        try:
            row, _ = self.announce.change(group, marker_id, decide)
        except SdkError:
            if left:
                self.intents.clear(intent)
            raise
        try:
            self.announce.settle(group, marker_id, row)
            self.intents.clear(intent)
        except Unavailable:
            pass  # the change is durable and so is the intent: its event follows
        return dict(row.content["record"])


@dataclass(frozen=True, slots=True)
class SettleMarkers:
    """Commit the events of changes whose process died before it could."""

    announce: Announce
    rows: Rows
    intents: Intents
    clock: Callable[[], int]
    may_go_on: Callable[[], bool]

    def __call__(self, older_than_ms: int, failures: Failures) -> int:
        """One that fails holds no other up; the next run tries it again."""
        settled = 0
        for intent in self.intents.left_before(self.clock() - older_than_ms):
            if not self.may_go_on():
                break
            settled += failures.around("settle", intent.group, partial(self._settle, intent), otherwise=False)
        return settled

    def _settle(self, intent: Intent) -> bool:
        row = self.rows.get(intent.group, intent.key)
        pending = row is not None and row.pending is not None
        if row is not None and pending:
            self.announce.settle(intent.group, intent.key, row)
        self.intents.clear(intent)
        return pending


def marker_group(tenant: str, runtime_id: str) -> str:
    return join_key("markers", tenant, runtime_id)


def _live(marker_id: str, row: VersionedRow | None, expected: int) -> Mapping[str, Any]:
    if row is None or row.content["deleted"]:
        raise Absent("There is no such marker.", domain="marker", marker_id=marker_id)
    if row.version != expected:
        raise stale(marker_id, expected, row.version)
    record: Mapping[str, Any] = row.content["record"]
    return record
