"""T11: what `status()` folds out of a stream's events, and that it stays small."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.streams.domain.envelope import EVENT_TYPES, SEVERITIES
from millrace.streams.domain.status import MAX_HEALTH_KEYS, MAX_INTERFACES, State, fold, nothing
from tests.unit.streams.hub import event, transition


def folded(*events: dict[str, Any]) -> State:
    state = nothing()
    for position, one in enumerate(events, 1):
        fold(state, one, position)
    return state


def test_nothing_has_happened_yet() -> None:
    """T11."""
    assert nothing() == {"events": 0, "by_type": {}, "by_severity": {}, "deliveries": {}, "interfaces": {}}


def test_events_are_counted_by_type_and_severity() -> None:
    """T11: an extension's own name counts as an ExtensionEvent, so the names cannot pile up."""
    state = folded(
        event("a", "HealthSnapshot"),
        event("b", "acme.radio.tuned", severity="warn"),
        event("c", "ExtensionEvent", payload={"extension_event_type": "x.y.z"}),
    )
    assert state["events"] == 3
    assert state["by_type"] == {"HealthSnapshot": 1, "ExtensionEvent": 2}
    assert state["by_severity"] == {"info": 2, "warn": 1}
    assert state["last_event"] == {
        "event_id": "c",
        "seq_no": 3,
        "ts_ms": 1_771_236_000_000,
        "event_type": "ExtensionEvent",
    }


def test_the_runtimes_state_is_the_last_one_told() -> None:
    """T11: as `to` or as `state`; what is not a short text is no state."""
    first, second = event("a", payload={"to": "starting"}), event("b", ts_ms=7, payload={"state": "running"})
    assert folded(first, second)["runtime_state"] == {"event_id": "b", "seq_no": 2, "ts_ms": 7, "state": "running"}
    for odd in ({}, {"to": 5}, {"to": ["up"]}, {"to": "x" * 129}):
        assert folded(first, event("b", payload=odd))["runtime_state"]["state"] is None


def test_deliveries_count_the_messages_that_reached_each_state() -> None:
    """T11, T4."""
    state = folded(
        transition("a", "m1", "queued"),
        transition("b", "m2", "queued"),
        transition("c", "m1", "delivered"),
        transition("d", "m2", "failed"),
    )
    assert state["deliveries"] == {"queued": 2, "delivered": 1, "failed": 1}


def test_interfaces_have_their_last_state_each() -> None:
    """T11."""
    state = folded(
        event("a", "InterfaceStateChanged", payload={"interface": "tcp0", "to": "up"}),
        event("b", "InterfaceStateChanged", payload={"interface_id": "lora", "state": "up"}),
        event("c", "InterfaceStateChanged", payload={"interface": "tcp0", "to": "down"}),
        event("d", "InterfaceStateChanged", payload={"interface": {"n": 1}, "to": "down"}),
    )
    assert {name: (of["state"], of["seq_no"]) for name, of in state["interfaces"].items()} == {
        "tcp0": ("down", 3),
        "lora": ("up", 2),
    }


def test_the_last_error_is_named_without_its_payload() -> None:
    """T11, P2."""
    state = folded(event("a", "ErrorRaised", severity="critical", payload={"text": "canary"}))
    assert state["last_error"] == {
        "event_id": "a",
        "seq_no": 1,
        "ts_ms": 1_771_236_000_000,
        "severity": "critical",
        "source_component": "router",
    }
    assert "canary" not in json.dumps(state)


def test_health_is_the_last_snapshots_plain_values() -> None:
    """T11."""
    payload = {"b": 1, "a": True, "t": "ok", "f": 0.5, "none": None, "deep": {"x": 1}, "list": [1], "long": "x" * 129}
    health = folded(event("a", "HealthSnapshot", payload=payload))["health"]
    assert list(health["snapshot"].items()) == [("a", True), ("b", 1), ("f", 0.5), ("t", "ok")]
    assert (health["event_id"], health["seq_no"]) == ("a", 1)


def test_a_status_is_bounded_whatever_is_sent() -> None:
    """T11."""
    many = [event(f"i{n}", "InterfaceStateChanged", payload={"interface": f"i{n}"}) for n in range(MAX_INTERFACES + 9)]
    wide = event("h", "HealthSnapshot", payload={f"k{n:03}": n for n in range(MAX_HEALTH_KEYS + 9)})
    known = event("z", "InterfaceStateChanged", payload={"interface": "i0", "to": "again"})
    state = folded(*many, wide, known)
    assert len(state["interfaces"]) == MAX_INTERFACES
    assert state["interfaces"]["i0"]["state"] == "again", "a known one is still followed when there are too many"
    assert len(state["health"]["snapshot"]) == MAX_HEALTH_KEYS


payloads: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(["to", "state", "interface", "interface_id", "x"]),
    st.sampled_from(["up", 1, None, [], {}, "y" * 200, True]),
)


@given(st.lists(st.tuples(st.sampled_from(EVENT_TYPES), st.sampled_from(SEVERITIES), payloads), max_size=12))
@settings(max_examples=60)
def test_any_checked_event_can_be_folded_and_stored(said: list[tuple[str, str, Any]]) -> None:
    """T11: going on from what was stored gives the same as folding it all."""
    events = [
        event(f"e{n}", kind, severity=severity, payload={**payload, **({"to": "sent"} if kind.endswith("on") else {})})
        for n, (kind, severity, payload) in enumerate(said)
    ]
    state = nothing()
    for position, one in enumerate(events, 1):
        state = json.loads(json.dumps(state))
        fold(state, one, position)
    assert state == folded(*events)
    assert state["events"] == sum(state["by_type"].values()) == sum(state["by_severity"].values()) == len(events)
