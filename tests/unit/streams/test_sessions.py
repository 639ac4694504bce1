"""T5: a negotiation belongs to a runtime session, a runtime and a client; it can be read back, and it is audited."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.ledger.application.audit import audit_ledger
from millrace.ledger.domain.errors import Forbidden, Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Page
from millrace.streams.domain.errors import EventTooLarge, InvalidState, MaxPollEventsExceeded
from millrace.streams.domain.negotiate import RECEIPT_TERMINALITY, negotiate
from tests.unit.streams.hub import RUNTIME, StreamsHub, codes, event, transition

BASE = {"supported_contract_versions": [2]}
READER: dict[str, Any] = {"client_id": "reader", "roles": ["consumer"]}
WRITER: dict[str, Any] = {"client_id": "writer", "roles": ["producer"]}


def agree(hub: StreamsHub, client: dict[str, Any], **asked: Any) -> dict[str, Any]:
    return hub.negotiate(hub.identity(**client), RUNTIME, {**BASE, **asked})


def effective(hub: StreamsHub, client: dict[str, Any]) -> dict[str, Any]:
    return hub.negotiate.effective(hub.identity(**client), RUNTIME)


def test_a_readers_plain_negotiation_ends_no_message_of_a_producer() -> None:
    """T4, T5: what `sent` means is the producer's to negotiate."""
    hub = StreamsHub()
    agree(hub, WRITER, requested_capabilities=[RECEIPT_TERMINALITY])
    agree(hub, READER)
    assert codes(hub.send(transition("e1", "m", "sent"), **WRITER)) == [1]
    agree(hub, READER, profile="embedded-alloc")
    assert codes(hub.send(transition("e2", "m", "delivered"), **WRITER)) == [2]


def test_each_client_works_under_its_own_limits() -> None:
    """T5, T10: at emission, at polls and for markers, and whoever negotiated last."""
    hub = StreamsHub()
    large, small = {"max_poll_events": 500}, {"max_poll_events": 2, "max_event_bytes": 256}
    agree(hub, WRITER)
    agree(hub, READER, limits=large)
    agree(hub, {**WRITER, "client_id": "device"}, limits=small)
    big = event("big", payload={"pad": "x" * 300})
    assert codes(hub.send(big, **WRITER)) == [1]
    assert codes(hub.send(event("big2", payload=big["payload"]), client_id="device")) == ["VALIDATION_EVENT_TOO_LARGE"]
    assert len(hub.next(None, 500, **READER).events) == 1
    with pytest.raises(MaxPollEventsExceeded):
        hub.next(None, 3, client_id="device")
    marker = {"label": "L", "position": {"lat": 1, "lon": 2}, "extensions": {"pad": "x" * 300}}
    hub.markers.create(hub.identity(**WRITER), RUNTIME, marker)
    with pytest.raises(EventTooLarge):
        hub.markers.create(hub.identity(client_id="device"), RUNTIME, marker)


def test_the_effective_negotiation_is_that_of_the_client_that_asks() -> None:
    """T5: as it was answered when it was made."""
    hub = StreamsHub()
    ours = agree(hub, WRITER, requested_capabilities=[RECEIPT_TERMINALITY], limits={"max_poll_events": 7})
    theirs = agree(hub, READER, profile="embedded-alloc")
    assert (effective(hub, WRITER), effective(hub, READER)) == (ours, theirs)
    assert ours["effective_capabilities"] == [RECEIPT_TERMINALITY]
    assert theirs["effective_limits"]["max_event_bytes"] == 8_192
    again = agree(hub, WRITER)
    assert (effective(hub, WRITER), effective(hub, READER)) == (again, theirs)


def test_one_client_negotiates_for_no_other() -> None:
    """T1, T5: who has not negotiated is told so, whatever others have."""
    hub = StreamsHub()
    stranger: dict[str, Any] = {"client_id": "stranger"}
    for attempt in (
        lambda: effective(hub, stranger),
        lambda: hub.send(event("a"), **stranger),
        lambda: hub.next(**stranger),
        lambda: hub.markers.create(hub.identity(**stranger), RUNTIME, {}),
    ):
        with pytest.raises(InvalidState) as refusal:
            attempt()
        assert refusal.value.details == {"field": "runtime_id"}
    agree(hub, stranger)
    assert codes(hub.send(event("a"), **stranger)) == [1]


@pytest.mark.parametrize("claims", [{"roles": ["operator"]}, {"roles": []}, {"partitions": ["runtime:other"]}])
def test_the_effective_negotiation_needs_a_role_and_the_runtime(claims: dict[str, Any]) -> None:
    """T5: producer or consumer."""
    hub = StreamsHub()
    with pytest.raises(Forbidden):
        effective(hub, claims)
    for role in ("producer", "consumer"):
        assert effective(hub, {"roles": [role], "partitions": ["runtime:r*"]})["runtime_id"] == RUNTIME


def test_what_an_earlier_release_stored_for_a_runtime_holds_until_a_client_negotiates_itself() -> None:
    """T5: clients that were at work go on; from then on each has its own."""
    hub = StreamsHub(negotiated=False)
    hub.runtimes.negotiated["default", RUNTIME, None] = negotiate({**BASE, "profile": "embedded-alloc"})
    assert effective(hub, READER)["effective_limits"]["max_poll_events"] == 32
    assert codes(hub.send(event("a"), **WRITER)) == [1]
    agree(hub, WRITER)
    assert effective(hub, WRITER)["effective_limits"]["max_poll_events"] == 256
    assert effective(hub, READER)["effective_limits"]["max_poll_events"] == 32


def test_every_negotiation_leaves_an_audit_row() -> None:
    """T5: who agreed on what, in order; nothing of what was asked for and not given."""
    hub = StreamsHub(negotiated=False)
    agree(hub, WRITER, requested_capabilities=[RECEIPT_TERMINALITY, "unknown"], limits={"max_poll_events": 7})
    agree(hub, READER)
    first, second = hub.audit.read(hub.identity(), 0, 10)["events"]
    assert first == {
        "position": 1,
        "ts_ms": hub.clock.ms,
        "who": "writer",
        "action": "negotiated",
        "runtime_id": RUNTIME,
        "version": 2,
        "profile": "desktop-full",
        "capabilities": [RECEIPT_TERMINALITY],
        "limits": {
            "max_poll_events": 7,
            "max_event_bytes": 65_536,
            "max_batch_bytes": 1_048_576,
            "max_extension_keys": 32,
        },
    }
    assert (second["who"], second["capabilities"]) == ("reader", [])


class DeafLog(type(StreamsHub().log)):  # type: ignore[misc]
    """Nothing can be recorded in the audit ledger."""

    def append(self, ledger: Ledger, page: Page) -> Page | None:
        if ledger == audit_ledger("default"):
            raise Unavailable("Storage did not answer.")
        winner: Page | None = super().append(ledger, page)
        return winner


def test_a_negotiation_that_cannot_be_recorded_changes_nothing() -> None:
    """T5: recorded first, in effect then."""
    hub = StreamsHub()
    before = agree(hub, WRITER)
    hub.log = DeafLog(hub.log.pages)
    with pytest.raises(Unavailable):
        agree(hub, WRITER, profile="embedded-alloc")
    assert effective(hub, WRITER) == before
