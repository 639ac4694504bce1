"""Bad events on a whole hub (T1, T2): each is refused by the name of its field and hurts no other."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.conftest import Hub
from tests.e2e.streams_api import Runtime, error, event, negotiated

INVALID = "SDK_VALIDATION_INVALID_ARGUMENT"
LONG = "x" * 257
BAD_EVENTS: list[tuple[Any, str]] = [
    (None, "event"),
    ([], "event"),
    ("text", "event"),
    ({}, "payload"),
    ({"event_id": "x", "payload": {}}, "contract_version"),
    (event(""), "event_id"),
    (event(" \t"), "event_id"),
    (event(LONG), "event_id"),
    (event("gap-7"), "event_id"),
    (event("x", event_id=None), "event_id"),
    (event("x", event_id=5), "event_id"),
    (event("x", seq_no=1), "seq_no"),
    (event("x", runtime_id="theirs"), "runtime_id"),
    (event("x", contract_version=1), "contract_version"),
    (event("x", contract_version=True), "contract_version"),
    (event("x", contract_version="2"), "contract_version"),
    (event("x", contract_version=[2]), "contract_version"),
    (event("x", ts_ms=-1), "ts_ms"),
    (event("x", ts_ms=2**53), "ts_ms"),
    (event("x", ts_ms=1.5), "ts_ms"),
    (event("x", ts_ms="now"), "ts_ms"),
    (event("x", event_type="Nonsense"), "event_type"),
    (event("x", event_type="two.parts"), "event_type"),
    (event("x", event_type="sdk.own.name"), "event_type"),
    (event("x", event_type="SDK.own.name"), "event_type"),
    (event("x", event_type="a..b"), "event_type"),
    (event("x", event_type="acme.radio.Tuned"), "event_type"),
    (event("x", event_type={"a": []}), "event_type"),
    (event("x", event_type="ExtensionEvent"), "payload.extension_event_type"),
    (
        event("x", event_type="ExtensionEvent", payload={"extension_event_type": "sdk.marker.moved"}),
        "payload.extension_event_type",
    ),
    (event("x", event_type="StreamGap"), "payload.expected_seq_no"),
    (event("x", event_type="DeliveryStateTransition", payload={"to": "sent"}), "message_id"),
    (event("x", event_type="DeliveryStateTransition", message_id="m", payload={"to": "lost"}), "payload.to"),
    (event("x", event_type="DeliveryStateTransition", message_id="m", payload={"to": {}}), "payload.to"),
    (event("x", severity="fatal"), "severity"),
    (event("x", severity={}), "severity"),
    (event("x", source_component=""), "source_component"),
    (event("x", peer_id=""), "peer_id"),
    (event("x", trace_id=[1]), "trace_id"),
    (event("x", message_id=LONG), "message_id"),
    (event("x", payload=None), "payload"),
    (event("x", payload=[1]), "payload"),
    (event("x", extensions=[]), "extensions"),
    (event("x", extensions={str(n): n for n in range(33)}), "extensions"),
    (event("x", extensions={"vendorKey": 1}), "extensions.vendorKey"),
    (event("x", mood="good"), "mood"),
    (event("x", **{LONG: 1}), LONG[:64]),
]


def test_t1_t2_a_bad_event_names_its_field_alone_and_among_good_ones(stack: Hub) -> None:
    runtime = negotiated(stack, "strict")
    good = event("good")
    for sent, field in BAD_EVENTS:
        batch = runtime.emit("bad", good, sent)
        assert "seq_no" in batch[0], field
        assert (batch[1]["details"]["field"], batch[1]["category"]) == (field, "Validation"), sent
        if isinstance(sent, dict):
            alone = error(runtime.ask("POST", "/streams/bad/events", json=sent), 400)
            assert alone["details"]["field"] == field
    assert [one["event_id"] for one in runtime.events("bad")] == ["good"], "not one of them was stored"


@pytest.mark.parametrize(
    "body", [{"events": []}, {"events": [event("a")] * 101}, {"events": {}}, {"events": None}, {"events": [1], "x": 2}]
)
def test_a_bad_batch_is_refused_as_a_whole(stack: Hub, body: Any) -> None:
    refused = error(negotiated(stack, "strict").ask("POST", "/streams/s/events", json=body), 400)
    assert (refused["machine_code"], refused["details"]["field"]) == (INVALID, "events")


@pytest.mark.parametrize("name", ["#", "a#b", "a?b", "a\tb", "\u0000", "\uffff", "é" * 65])
def test_a_name_that_would_break_a_path_or_a_message_is_refused_where_it_would_begin(stack: Hub, name: str) -> None:
    quoted = quote(name, safe="")
    asked = {"supported_contract_versions": [2]}
    refused = error(Runtime(stack, quoted).ask("POST", "/negotiate", json=asked), 400)
    assert (refused["machine_code"], refused["details"]["field"]) == (INVALID, "runtime_id")
    refused = error(negotiated(stack, "strict").ask("POST", f"/streams/{quoted}/events", json=event("a")), 400)
    assert (refused["machine_code"], refused["details"]["field"]) == (INVALID, "stream_id")


@pytest.mark.parametrize("name", ["a b", "é", "😀", "*", "x" * 128, "a:b"])
def test_odd_names_of_runtimes_and_streams_are_kept_apart_and_come_back_as_sent(stack: Hub, name: str) -> None:
    """But for a percent sign, which gateways leave encoded."""
    quoted = quote(name, safe="")
    runtime = negotiated(stack, quoted)
    (result,) = runtime.emit(quoted, event("a"))
    assert result["seq_no"] == 1
    (found,) = runtime.poll(quoted)["events"]
    assert (found["runtime_id"], found["stream_id"]) == (name, name)
    assert [one["stream_id"] for one in runtime.good("GET", "/status")["streams"]] == [name]


def test_the_stream_markers_is_the_hubs_own(stack: Hub) -> None:
    refused = error(negotiated(stack, "strict").ask("POST", "/streams/markers/events", json=event("a")), 400)
    assert (refused["machine_code"], refused["details"]["field"]) == (INVALID, "stream_id")
