"""The metrics of the hub: every name it counts under, and what each means. docs/metrics.md is made from this list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from millrace.ledger.domain.names import Ledger


class Metric(StrEnum):
    EVENTS_COMMITTED = "EventsCommitted"
    EVENTS_DEDUPLICATED = "EventsDeduplicated"
    EVENTS_REFUSED = "EventsRefused"
    PUTS_LOST = "PutsLost"
    CLAIMS_RETRIED = "ClaimsRetried"
    COMMITS_GIVEN_UP = "CommitsGivenUp"
    REQUESTS_WAITED = "RequestsWaited"
    WAITED_MS = "WaitedMilliseconds"
    PAGES_LED = "PagesLed"
    EVENTS_LED = "EventsLed"
    DELIVERIES = "Deliveries"
    DRAINS_FAILED = "DrainsFailed"
    DRAINS_TAKEN_OVER = "DrainsTakenOver"
    EVENTS_ARCHIVED = "EventsArchived"
    ARCHIVE_OBJECTS = "ArchiveObjects"
    EVENTS_PRUNED_UNARCHIVED = "EventsPrunedUnarchived"
    ROWS_UNREADABLE = "RowsUnreadable"


MEANINGS: Mapping[Metric, str] = {
    Metric.EVENTS_COMMITTED: "Events that were newly stored.",
    Metric.EVENTS_DEDUPLICATED: "Events that were stored before and came again under the same id.",
    Metric.EVENTS_REFUSED: "Events that broke a rule or a right, and were not stored.",
    Metric.PUTS_LOST: "Pages that could not be put because another writer was first. The writer tries again.",
    Metric.CLAIMS_RETRIED: "Claims that had to be sent again because storage did not answer for them.",
    Metric.COMMITS_GIVEN_UP: "Requests that lost to other writers too often; the caller is asked to send them again.",
    Metric.REQUESTS_WAITED: "Requests that waited in a busy ledger's waiting room, or led it.",
    Metric.WAITED_MS: "How long those requests waited, all together, in milliseconds.",
    Metric.PAGES_LED: "Pages that a leader put for itself and for requests that waited.",
    Metric.EVENTS_LED: "Events in those pages.",
    Metric.DELIVERIES: "Attempts to deliver an event to a target, by what came of them.",
    Metric.DRAINS_FAILED: "Drains that storage interrupted. The target is tried again within minutes.",
    Metric.DRAINS_TAKEN_OVER: "Drains that died in the middle of their work, and that another one went on with.",
    Metric.EVENTS_ARCHIVED: "Events that were written into the archive.",
    Metric.ARCHIVE_OBJECTS: "Objects that were written into the archive.",
    Metric.EVENTS_PRUNED_UNARCHIVED: "Events whose bodies were pruned before they were archived. This must stay 0.",
    Metric.ROWS_UNREADABLE: "Stored rows that could not be read and were passed over. The log says which.",
}

Tell = Callable[[Ledger, Mapping[Metric, int]], None]
"""How the core tells what happened in a ledger, and how often."""


def quiet(_ledger: Ledger, _counts: Mapping[Metric, int]) -> None:
    """The default: nobody listens."""
