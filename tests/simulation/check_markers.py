"""What marker writers and readers may rely on (M1–M5), whatever fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millrace.streams.domain.envelope import MARKER_STREAM
from millrace.streams.domain.errors import Absent, Conflict, SdkError
from millrace.streams.domain.marker import CREATED, DELETED, MOVED
from millrace.streams.ports import VersionedRow
from tests.simulation.announced import MARKERS, Asked, Listed, Story, committed, current_between
from tests.simulation.history import broken
from tests.simulation.rows import RecordedTables, Version

KINDS = {"create": CREATED, "move": MOVED, "delete": DELETED}


def check_markers(story: Story, tables: RecordedTables, *, swept: bool) -> None:
    """`swept`: no process is alive and the sweep has run, so every change must have been told of."""
    events = [one.event for one in committed(tables.log) if one.stream == MARKER_STREAM]
    by_id = {marker_id: versions for (group, marker_id), versions in tables.rows.versions.items() if group == MARKERS}
    for marker_id, versions in by_id.items():
        mine = [event for event in events if event["payload"]["marker"]["marker_id"] == marker_id]
        _check_events(marker_id, mine, versions, tables.rows.items[MARKERS, marker_id], swept=swept)
    broken(len(events) > sum(map(len, by_id.values())), "events of markers that nobody changed")
    for asked in story.asked:
        _check_asked(asked, by_id.get(asked.marker_id, []))
    for listed in story.listed:
        _check_listed(listed, by_id)
    broken(swept and tables.rows.left, "intents are left after the sweep:", tables.rows.left)


def _check_events(
    marker_id: str, mine: Sequence[Mapping[str, Any]], versions: Sequence[Version], row: VersionedRow, *, swept: bool
) -> None:
    """M1, M5: one event for each revision, in order, with the record of that revision."""
    ids = [event["event_id"] for event in mine]
    broken(ids != [f"marker-{marker_id}-{n}" for n in range(1, len(ids) + 1)], "events out of order or missing:", ids)
    unsaid = len(versions) - len(mine)
    broken(unsaid > (row.pending is not None), unsaid, "changes of", marker_id, "are told of by nobody")
    broken(swept and (unsaid or row.pending), "the sweep has left the last change of", marker_id)
    gone = True
    for event, version in zip(mine, versions, strict=False):
        kind, record = event["payload"]["extension_event_type"], event["payload"]["marker"]
        broken(record != version.row.content["record"], "an event tells of another record:", event)
        broken(record["revision"] != version.row.version, "a revision is not its version:", event)
        broken((kind == CREATED) != gone, "a marker was", kind, "while it was", "gone" if gone else "there", ids)
        gone = kind == DELETED


def _check_asked(asked: Asked, versions: Sequence[Version]) -> None:
    """M2, M3: a write is applied once or not at all; who is refused is told why, and changed nothing."""
    mine = [v.row for v in versions if v.row.pending is not None and v.row.pending.client_id == asked.client_id]
    broken(len(mine) > 1, "one write changed a marker twice:", asked)
    for row in mine:
        broken(asked.kind != "create" and row.version != asked.expected + 1, "a stale write was applied:", asked)
    if asked.answer is None:
        return
    during = current_between(versions, asked.sent, asked.answered)
    if isinstance(asked.answer, SdkError):
        broken(mine, "refused but applied:", asked)
        broken(not _justified(asked, asked.answer, during), "refused for no reason:", asked, asked.answer.details)
    elif not asked.answer["accepted"]:
        broken(mine, "told of an absent marker but applied:", asked)
        broken(not any(map(_is_gone, during)), "told of an absent marker that was there:", asked)
    else:
        broken(not mine, "accepted but not applied:", asked)
        record = mine[0].content["record"]
        told = asked.answer.get("marker", record)
        broken(told != record or asked.answer.get("revision", told["revision"]) != mine[0].version, "wrong:", asked)


def _justified(asked: Asked, refusal: SdkError, during: Sequence[VersionedRow | None]) -> bool:
    if isinstance(refusal, Absent):
        return asked.kind == "move" and any(map(_is_gone, during))
    observed = [row for row in during if row is not None and row.version == refusal.details.get("observed_revision")]
    expected = 0 if asked.kind == "create" else asked.expected
    details = {
        "domain": "marker",
        "marker_id": asked.marker_id,
        "expected_revision": expected,
        "observed_revision": observed[0].version if observed else None,
    }
    live = bool(observed) and not _is_gone(observed[0])
    return isinstance(refusal, Conflict) and live and observed[0].version != expected and refusal.details == details


def _check_listed(listed: Listed, markers: Mapping[str, Sequence[Version]]) -> None:
    """M4: every record was current at some time; a marker that stood there all the time is in the list."""
    records = {record["marker_id"]: record for record in listed.records}
    broken(len(records) != len(listed.records), "a list has a marker twice", listed.records)
    for marker_id, versions in markers.items():
        record = records.pop(marker_id, None)
        during = current_between(versions, listed.sent, listed.answered)
        stood = [None if row is None or _is_gone(row) else row.content["record"] for row in during]
        broken(record not in stood, "a list tells of", record, "for", marker_id, "which was", stood)
    broken(records, "a list has markers that nobody made:", records)


def _is_gone(row: VersionedRow | None) -> bool:
    return row is None or bool(row.content["deleted"])
