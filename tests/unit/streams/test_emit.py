"""T1–T4, T10, P2–P4 at the way in: one result per event, each event once, nothing secret stored."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from millrace.ledger.domain.canonical import canonical, digest
from millrace.ledger.domain.errors import Forbidden, Unavailable
from millrace.ledger.domain.page import Draft, Origin
from millrace.streams.application.emit import Emitted, delivery_group
from millrace.streams.domain.errors import Conflict, InvalidArgument, InvalidState, SdkError
from millrace.streams.domain.negotiate import RECEIPT_TERMINALITY
from millrace.streams.domain.privacy import Policy
from millrace.streams.ports import VersionedRow
from tests.unit.streams.crashing_stores import CRASHES, crashing_hub
from tests.unit.streams.hub import RUNTIME, STREAM, StreamsHub, accepted, codes, event, told, transition

CANARY = "canary-e"


def positions(hub: StreamsHub, stream: str = STREAM) -> list[tuple[str, int]]:
    return [(one["event_id"], one["seq_no"]) for one in hub.stored(stream)]


def test_a_batch_gets_ascending_positions_without_gaps() -> None:
    """T3."""
    hub = StreamsHub()
    results = [accepted(result) for result in hub.send(*(event(f"e{n}") for n in range(100)))]
    assert results == [Emitted(f"e{n}", n + 1, False) for n in range(100)]
    assert codes(hub.send(event("next"))) == [101]
    assert positions(hub) == [*((f"e{n}", n + 1) for n in range(100)), ("next", 101)]


def as_earlier_releases_did(hub: StreamsHub, sent: dict[str, Any]) -> None:
    """Commit an event as hubs did that took null for content, and remember it in its message's row."""
    body = canonical({**sent, "runtime_id": RUNTIME, "stream_id": STREAM})
    hub.commit(hub.ledger(), [Draft(sent["event_id"], digest(body), body)], Origin("me"))
    if sent["event_type"] == "DeliveryStateTransition":
        passed = {sent["payload"]["to"]: [STREAM, sent["event_id"], digest(body).hex()]}
        content = {"state": sent["payload"]["to"], "terminal": False, "events": passed}
        hub.rows.put(delivery_group("default", RUNTIME), sent["message_id"], VersionedRow(1, content, "n"))


@pytest.mark.parametrize(
    "sent",
    [
        event("a", operation_id=None, message_id=None, extensions=None),
        event("a", extensions=None),
        transition("a", "m", "queued", operation_id=None, extensions=None),
    ],
)
def test_a_retry_of_an_event_that_was_stored_with_nulls_is_still_that_event(sent: dict[str, Any]) -> None:
    """T3: null counts as absent, also for ids that are older than this rule; other content still conflicts."""
    hub = StreamsHub()
    as_earlier_releases_did(hub, sent)
    assert accepted(hub.send(sent)[0]) == Emitted("a", 1, True)
    (other,) = hub.send({**sent, "payload": {**sent["payload"], "n": 2}})
    assert isinstance(other, Conflict)
    assert positions(hub) == [("a", 1)]


def test_what_was_stored_with_nulls_and_other_keys_is_read_without_the_nulls() -> None:
    """T1: no `extensions: null` in an answer; keys that are refused today stay readable."""
    hub = StreamsHub()
    null = {"operation_id": None, "peer_id": None, "extensions": None}
    as_earlier_releases_did(hub, event("a", **null, payload={"extensions": None, "n": 1}))
    as_earlier_releases_did(hub, event("b", "Acme.Radio.Tuned", extensions={"Old Key": None}))
    first, second = told(hub.next())
    assert first == {
        **event("a", payload={"extensions": None, "n": 1}),
        "runtime_id": RUNTIME,
        "stream_id": STREAM,
        "seq_no": 1,
    }
    assert (second["event_type"], second["extensions"]) == ("Acme.Radio.Tuned", {"Old Key": None})


def test_streams_and_runtimes_and_tenants_number_and_dedupe_apart() -> None:
    """T3: the scope is {runtime_id, stream_id}, within the token's tenant."""
    hub = StreamsHub()
    hub.agree("r2")
    hub.negotiate(hub.identity(tenant="t2"), RUNTIME, {"supported_contract_versions": [2]})
    ways: list[dict[str, Any]] = [{}, {"stream": "s2"}, {"runtime": "r2"}, {"tenant": "t2"}]
    for number, way in enumerate(ways):
        assert codes(hub.send(event("e", payload={"n": number}), **way)) == [1]
    for number, way in enumerate(ways):
        assert [one["payload"] for one in told(hub.next(**way))] == [{"n": number}]


def test_the_same_event_again_is_answered_with_its_first_position() -> None:
    """T3."""
    hub = StreamsHub()
    hub.send(event("a"), event("b"))
    hub.restart()
    assert hub.send(event("b"), event("c"), event("a")) == [
        Emitted("b", 2, True),
        Emitted("c", 3, False),
        Emitted("a", 1, True),
    ]


@pytest.mark.parametrize(
    "changes",
    [{"payload": {"to": "down"}}, {"ts_ms": 1}, {"severity": "warn"}, {"extensions": {}}, {"message_id": "m"}],
)
def test_the_same_id_with_other_content_conflicts_and_shows_nothing_of_either(changes: dict[str, Any]) -> None:
    """T3."""
    hub = StreamsHub()
    hub.send(event("a", source_component=f"stored-{CANARY}"))
    sent = event("a", source_component=f"sent-{CANARY}", **changes)
    (refused,) = hub.send(sent)
    assert isinstance(refused, SdkError)
    assert (refused.code, refused.status, refused.details["domain"]) == ("SDK_RUNTIME_CONFLICT", 409, "event")
    assert CANARY not in json.dumps(refused.body())
    assert positions(hub) == [("a", 1)]


def test_other_sensitive_or_secret_values_are_no_other_content() -> None:
    """P3: and the first values stay."""
    hub = StreamsHub()
    hub.send(event("a", peer_id="bob", payload={"auth_token": "x", "to": "up"}))
    assert codes(hub.send(event("a", peer_id="alice", payload={"auth_token": "y", "to": "up"}))) == [1]
    assert hub.stored()[0]["peer_id"] == hub.hasher("default")("bob")


def test_duplicates_within_a_batch_are_one_event() -> None:
    """T3: the first of them is fresh."""
    hub = StreamsHub()
    results = hub.send(event("a"), event("b"), event("a"), event("a", payload={}), event("b"), event("c"))
    assert codes(results) == [1, 2, 1, "RUNTIME_CONFLICT", 2, 3]
    assert [isinstance(r, Emitted) and r.deduped for r in results] == [False, False, True, False, True, False]
    assert positions(hub) == [("a", 1), ("b", 2), ("c", 3)]


def test_one_bad_event_hurts_no_other() -> None:
    """T12: each has its own result, in order."""
    hub = StreamsHub()
    hub.agree(limits={"max_event_bytes": 256, "max_extension_keys": 1})
    results = hub.send(
        event("a"),
        event("bad", "Other"),
        event("b"),
        None,
        event("c", payload={"x": "y" * 300}),
        event("d", extensions={"a": 1, "b": 2}),
        transition("e", "m", "nowhere"),
        event("a", payload={}),
        event("f", seq_no=9),
        event("g"),
    )
    wrong = "VALIDATION_INVALID_ARGUMENT"
    assert codes(results) == [
        1,
        wrong,
        2,
        wrong,
        "VALIDATION_EVENT_TOO_LARGE",
        "VALIDATION_MAX_EXTENSION_KEYS_EXCEEDED",
        wrong,
        "RUNTIME_CONFLICT",
        wrong,
        3,
    ]
    assert positions(hub) == [("a", 1), ("b", 2), ("g", 3)]


def test_a_refused_event_takes_its_id_from_nobody() -> None:
    """T3, T4: the id of a refused event is still free, also within the same batch."""
    hub = StreamsHub()
    hub.send(transition("t1", "m", "delivered"))
    results = hub.send(transition("x", "m", "queued"), event("x"), transition("x", "m", "queued"))
    assert codes(results) == ["RUNTIME_ALREADY_TERMINAL", 2, "RUNTIME_ALREADY_TERMINAL"]
    assert positions(hub) == [("t1", 1), ("x", 2)]


def test_a_batch_may_take_a_message_through_all_its_states() -> None:
    """T4: in order, among other events and messages; what comes too late is refused alone."""
    hub = StreamsHub()
    hub.agree(requested_capabilities=[RECEIPT_TERMINALITY])
    results = hub.send(
        transition("a", "m1", "queued"),
        event("b"),
        transition("c", "m2", "queued"),
        transition("d", "m1", "sent"),
        transition("e", "m1", "in_flight"),
        transition("a", "m1", "queued"),
        transition("f", "m2", "failed"),
        transition("g", "m1", "delivered"),
        event("h"),
        transition("i", "m2", "delivered"),
    )
    assert codes(results) == [
        1,
        2,
        3,
        4,
        "RUNTIME_INVALID_STATE",
        1,
        5,
        6,
        7,
        "RUNTIME_ALREADY_TERMINAL",
    ]
    assert positions(hub) == [(id_, n) for n, id_ in enumerate("abcdfgh", 1)]
    assert not [row for row in hub.rows.items.values() if row.pending], "every row knows that its event is committed"


def test_the_same_batch_again_changes_nothing() -> None:
    """T3, T4: refused events are refused again, accepted ones keep their positions."""
    hub = StreamsHub()
    batch = [
        transition("a", "m", "queued"),
        event("b"),
        transition("c", "m", "queued"),
        transition("d", "m", "delivered"),
        transition("e", "m", "failed"),
        event("b", payload={}),
    ]
    first = codes(hub.send(*batch))
    assert first == [1, 2, "RUNTIME_INVALID_STATE", 3, "RUNTIME_ALREADY_TERMINAL", "RUNTIME_CONFLICT"]
    stored = hub.stored()
    hub.restart()
    again = hub.send(*batch)
    assert [one for one in codes(again) if isinstance(one, int)] == [1, 2, 3]
    assert [isinstance(one, str) for one in codes(again)] == [isinstance(one, str) for one in first]
    assert all(result.deduped for result in again if isinstance(result, Emitted))
    assert hub.stored() == stored


def test_without_negotiation_nothing_is_emitted() -> None:
    """T1."""
    hub = StreamsHub(negotiated=False)
    with pytest.raises(InvalidState) as refusal:
        hub.send(event("a"))
    assert refusal.value.status == 409
    assert not hub.stored()


@pytest.mark.parametrize(
    "claims",
    [
        {"roles": ["consumer", "operator"]},
        {"roles": []},
        {"partitions": ["runtime:r2"]},
        {"partitions": ["session:*"]},
        {"partitions": []},
    ],
)
def test_a_token_needs_the_role_and_the_runtime(claims: dict[str, Any]) -> None:
    """T12: SDK_SECURITY_AUTHZ_DENIED at the door."""
    hub = StreamsHub()
    with pytest.raises(Forbidden):
        hub.send(event("a"), **claims)
    assert not hub.stored()
    assert codes(hub.send(event("a"), roles=["producer"], partitions=["runtime:r*"])) == [1]


@pytest.mark.parametrize("name", ["", " ", "x" * 129, "ä" * 65])
def test_names_in_the_path_have_their_limits(name: str) -> None:
    """T1."""
    hub = StreamsHub()
    with pytest.raises(InvalidArgument):
        hub.send(event("a"), runtime=name)
    with pytest.raises(InvalidArgument):
        hub.send(event("a"), stream=name)
    assert not hub.stored()


def test_the_markers_stream_is_the_hubs_own() -> None:
    """M5."""
    hub = StreamsHub()
    assert codes(hub.send(event("a"), stream="markers")) == ["VALIDATION_INVALID_ARGUMENT"]


def test_an_agreement_counts_from_the_next_event_on() -> None:
    """T5, T10."""
    hub = StreamsHub()
    large = event("a", payload={"x": "y" * 300})
    hub.agree(limits={"max_event_bytes": 256})
    assert codes(hub.send(large)) == ["VALIDATION_EVENT_TOO_LARGE"]
    hub.agree(limits={"max_event_bytes": 512})
    assert codes(hub.send(large)) == [1]


def everything_stored(hub: StreamsHub) -> bytes:
    stores = (hub.log.pages, hub.claims.items, hub.rows.items, hub.rows.left, hub.raw.entries, hub.state.registry)
    return pickle.dumps((stores, hub.runtimes.made, hub.projections.projections))


def test_no_secret_is_stored_whatever_becomes_of_its_event() -> None:
    """P2: accepted, repeated, refused, under a grant, in a row, in a status."""
    hub = StreamsHub()
    hub.agree(limits={"max_event_bytes": 512})
    hub.diagnostics.grant(hub.identity(), RUNTIME, {"reason": "why", "ttl_s": 60})
    secret = {"AuthToken": CANARY, "list": [{"SESSION-SECRET": [CANARY]}], "peerId": {"private_key_material": CANARY}}
    results = hub.send(
        event("a", payload=secret, extensions=secret, message_payload=CANARY),
        event("a", payload={**secret, "other": 1}),
        transition("t", "m", "queued", extensions=secret),
        transition("u", "m", "queued", extensions=secret),
        event("b", "Other", payload=secret),
        event("c", payload={**secret, "x": "y" * 600}),
        event("d", payload=secret, auth_token=CANARY, unknown=CANARY),
    )
    hub.status(hub.identity(), RUNTIME)
    said = json.dumps([result.body() for result in results if isinstance(result, SdkError)])
    assert CANARY.encode() not in everything_stored(hub)
    assert CANARY not in said
    shown = hub.diagnostics.read(hub.identity(), RUNTIME, next(iter(hub.raw.entries)), "", 50)
    assert shown["entries"]
    assert CANARY not in json.dumps(shown)


def test_sensitive_values_are_stored_as_the_policy_says() -> None:
    """P3: and the hash of a tenant is its own."""
    hub = StreamsHub()
    hub.negotiate(hub.identity(tenant="t2"), RUNTIME, {"supported_contract_versions": [2]})
    sent = event("a", peer_id="bob", payload={"hops": [{"TraceId": "bob"}]})
    hub.send(sent)
    hub.send(sent, tenant="t2")
    (ours,), (theirs,) = told(hub.next()), told(hub.next(tenant="t2"))
    assert ours["peer_id"] == ours["payload"]["hops"][0]["TraceId"] == hub.hasher("default")("bob")
    assert theirs["peer_id"] != ours["peer_id"]
    hub.policy = Policy.of({"transform": "redact"})
    hub.send(event("b", peer_id="bob"))
    assert hub.stored()[1]["peer_id"] == "[redacted]"
    assert b"bob" not in everything_stored(hub)


@pytest.mark.parametrize("crash", CRASHES)
def test_a_storage_failure_fails_the_request_and_the_same_request_again_completes_it(crash: str) -> None:
    """T3, T4: whether it happened is unknown then, and asking again is safe."""
    hub, fuse = crashing_hub()
    batch = [event("a"), transition("t", "m", "queued"), event("b"), transition("u", "m", "sent"), event("c")]
    fuse.at = crash
    with pytest.raises(Unavailable):
        hub.send(*batch)
    assert sorted(accepted(result).position for result in hub.send(*batch)) == [1, 2, 3, 4, 5]
    assert sorted(id_ for id_, _ in positions(hub)) == ["a", "b", "c", "t", "u"]
    assert dict(positions(hub))["t"] < dict(positions(hub))["u"]
