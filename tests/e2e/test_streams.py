"""The streams contract on a whole hub: negotiate, emit, poll, lose history, and start over."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import millrace_client as client
from tests.e2e.conftest import Hub
from tests.e2e.streams_api import EVERY_ROLE, Runtime, code, error, event, negotiated, numbers, sdk_error


def test_t5_negotiation_fixes_version_capabilities_and_limits(stack: Hub) -> None:
    runtime = Runtime(stack, "negotiates")
    wanted = ["sdk.capability.receipt_terminality", "sdk.capability.teleport"]
    answer = runtime.negotiate(
        supported_contract_versions=[1, 2, 3],
        requested_capabilities=wanted,
        profile="embedded-alloc",
        limits={"max_poll_events": 5},
    )
    assert answer == {
        "runtime_id": "negotiates",
        "active_contract_version": 2,
        "effective_capabilities": wanted[:1],
        "effective_limits": {
            "max_poll_events": 5,
            "max_event_bytes": 8_192,
            "max_batch_bytes": 1_048_576,
            "max_extension_keys": 32,
        },
        "contract_release": "v2.5",
        "schema_namespace": "v2",
    }
    refused = error(runtime.ask("POST", "/negotiate", json={"supported_contract_versions": [1, 3]}), 409)
    assert refused["machine_code"] == "SDK_CAPABILITY_CONTRACT_INCOMPATIBLE"
    assert refused["details"]["supported_contract_versions"] == [2]


def test_t2_the_client_emits_and_reads_extension_events_that_nobody_knows(stack: Hub) -> None:
    extensions: list[dict[str, Any]] = [
        {"event_type": "acme.sensor.calibrated", "payload": {"drift": 1.5, "of": [None, {}]}},
        {"event_type": "ExtensionEvent", "payload": {"extension_event_type": "acme.sensor.moved", "to": "roof"}},
    ]

    async def read() -> list[dict[str, Any]]:
        async with client.Runtime(stack.http_url, "extended", stack.token()) as runtime:
            await runtime.negotiate("desktop-full")
            stream = runtime.stream("s")
            await stream.emit([{"source_component": "app", **one} for one in extensions])
            return [polled.event async for polled in stream.events(follow=False)]

    events = asyncio.run(read())
    assert [{name: one[name] for name in ("event_type", "payload")} for one in events] == extensions


def test_t4_t5_a_negotiation_is_its_clients_own(stack: Hub) -> None:
    """A reader's plain one neither shrinks a producer's limits nor ends its messages at `sent`."""
    capability = "sdk.capability.receipt_terminality"
    writer = Runtime(stack, "sessions", {"client_id": "writer"})
    reader = Runtime(stack, "sessions", {"client_id": "reader"})
    ours = writer.negotiate(requested_capabilities=[capability])
    assert code(reader.ask("GET", "/negotiate"), 409) == "SDK_RUNTIME_INVALID_STATE"
    theirs = reader.negotiate(profile="embedded-alloc", requested_capabilities=None)
    assert (writer.good("GET", "/negotiate"), reader.good("GET", "/negotiate")) == (ours, theirs)

    def step(id_: str, message: str, to: str) -> dict[str, Any]:
        return event(id_, event_type="DeliveryStateTransition", message_id=message, payload={"to": to})

    steps = [step("a", "m", "sent"), step("b", "m", "delivered")]
    assert [one.get("seq_no") for one in writer.emit("s", *steps)] == [1, 2]
    nulls = {"operation_id": None, "peer_id": None, "extensions": None, "seq_no": None}
    refused = reader.emit("s", {**step("c", "n", "sent"), **nulls}, step("d", "n", "delivered"))[1]
    assert (refused["machine_code"], refused["details"]["capability"]) == ("SDK_RUNTIME_ALREADY_TERMINAL", capability)
    last = reader.poll("s")["events"][-1]
    assert (last["event_id"], nulls.keys() & last.keys()) == ("c", {"seq_no"})


def test_t1_nothing_works_before_negotiation(stack: Hub) -> None:
    runtime, place = Runtime(stack, "silent"), {"lat": 1, "lon": 2}
    refused = (
        runtime.ask("POST", "/streams/s/events", json=event("a")),
        runtime.ask_poll("s"),
        runtime.ask("POST", "/markers", json={"label": "a", "position": place}),
        runtime.ask("PATCH", "/markers/m/position", json={"position": place, "expected_revision": 1}),
        runtime.ask("DELETE", "/markers/m", params={"expected_revision": 1}),
    )
    assert [code(response, 409) for response in refused] == ["SDK_RUNTIME_INVALID_STATE"] * len(refused)


def test_t1_t2_an_event_comes_back_as_it_was_sent(stack: Hub) -> None:
    runtime = negotiated(stack, "faithful")
    sent = [
        event("plain", payload={"text": "Grüße \u0000 😀", "exact": 2**80, "none": None, "list": [1.5, True, {}]}),
        event("full", operation_id="o", message_id="m", extensions={"vendor.x": {"deep": [1]}}),
        event("named", event_type="acme.radio.retuned", payload={}),
        event("pathed", runtime_id="faithful", stream_id="s", severity="critical"),
    ]
    one = runtime.good("POST", "/streams/s/events", json=sent[0])
    assert one == {"event_id": "plain", "seq_no": 1, "deduped": False}
    assert [result["seq_no"] for result in runtime.emit("s", *sent[1:])] == [2, 3, 4]
    expected = [{**it, "runtime_id": "faithful", "stream_id": "s", "seq_no": at} for at, it in enumerate(sent, 1)]
    assert runtime.poll("s")["events"] == expected


def test_t3_an_id_commits_once_and_other_content_is_a_conflict(stack: Hub) -> None:
    runtime = negotiated(stack, "once")
    first = runtime.emit("s", event("a"), event("b"))
    again = runtime.emit("s", event("b"), event("a"), event("a", payload={"load": 2}), event("c"))
    assert [(r["seq_no"], r["deduped"]) for r in first] == [(1, False), (2, False)]
    assert [(r["seq_no"], r["deduped"]) for r in again[:2]] == [(2, True), (1, True)]
    conflict = again[2]
    assert conflict.pop("event_id") == "a"
    assert sdk_error(conflict)["machine_code"] == "SDK_RUNTIME_CONFLICT"
    assert conflict["details"]["domain"] == "event"
    assert again[3] == {"event_id": "c", "seq_no": 3, "deduped": False}
    response = runtime.ask("POST", "/streams/s/events", json=event("b", severity="warn"))
    assert code(response, 409) == "SDK_RUNTIME_CONFLICT"
    elsewhere = runtime.emit("other", event("a", payload={"load": 2}))
    assert elsewhere == [{"event_id": "a", "seq_no": 1, "deduped": False}]


def test_t3_emitters_with_overlapping_batches_commit_each_event_once(stack: Hub) -> None:
    runtime = negotiated(stack, "crowded")
    ids = [f"e{number}" for number in range(300)]

    def emit_mine(client: int) -> dict[str, int]:
        mine = [id_ for at, id_ in enumerate(ids) if (at + client) % 6 < 3]
        random.Random(client).shuffle(mine)
        batches = [mine[at : at + 25] for at in range(0, len(mine), 25)]
        results = [one for batch in batches for one in runtime.emit("s", *(event(id_) for id_ in batch))]
        return {one["event_id"]: one["seq_no"] for one in results}

    with ThreadPoolExecutor(4) as pool:
        views = list(pool.map(emit_mine, range(6)))
    found = runtime.events("s")
    assert [one["seq_no"] for one in found] == list(range(1, len(ids) + 1))
    placed = {one["event_id"]: one["seq_no"] for one in found}
    assert placed.keys() == set(ids)
    assert all(placed[id_] == at for view in views for id_, at in view.items())


def test_t4_delivery_only_moves_forward_and_ends_once(stack: Hub) -> None:
    runtime = negotiated(stack, "delivers", requested_capabilities=["sdk.capability.receipt_terminality"])

    def move(id_: str, to: str, message: str = "m1") -> dict[str, Any]:
        return event(id_, event_type="DeliveryStateTransition", message_id=message, payload={"to": to})

    moves = [
        move("t1", "queued"),
        move("t2", "sent"),
        move("t3", "in_flight"),
        move("t4", "sent"),
        move("t1", "queued"),
    ]
    results = runtime.emit("s", *moves, move("t5", "delivered"), move("t6", "failed"), move("u1", "failed", "m2"))
    expected = [1, 2, "SDK_RUNTIME_INVALID_STATE", "SDK_RUNTIME_INVALID_STATE", 1, 3, "SDK_RUNTIME_ALREADY_TERMINAL", 4]
    assert [result.get("seq_no", result.get("machine_code")) for result in results] == expected
    response = runtime.ask("POST", "/streams/another/events", json=move("t7", "expired"))
    assert code(response, 409) == "SDK_RUNTIME_ALREADY_TERMINAL"
    assert [one["event_id"] for one in runtime.events("s")] == ["t1", "t2", "t5", "u1"]


def test_t6_t8_t9_history_that_is_gone_is_told_and_never_skipped(stack: Hub) -> None:
    """Emit, poll, prune, 410, 409, reset with a StreamGap, go on; the subscription next door notices nothing."""
    runtime = negotiated(stack, "pruned")
    runtime.emit("s", *(event(f"e{n}") for n in range(1, 13)))
    start = runtime.poll("s", max=2)
    middle = runtime.poll("s", start["next_cursor"], max=3)
    neighbour = runtime.poll("s")
    assert (numbers(start), numbers(middle), len(neighbour["events"])) == ([1, 2], [3, 4, 5], 12)
    assert (start["dropped_count"], neighbour["dropped_count"]) == (0, 0)

    runtime.prune("s", 8)
    expired = error(runtime.ask_poll("s", middle["next_cursor"]), 410)
    assert expired["machine_code"] == "SDK_RUNTIME_CURSOR_EXPIRED"
    assert (expired["details"]["cursor_seq_no"], expired["details"]["floor_seq_no"]) == (5, 9)
    for cursor in (middle["next_cursor"], start["next_cursor"], middle["next_cursor"]):
        assert code(runtime.ask_poll("s", cursor), 409) == "SDK_RUNTIME_STREAM_DEGRADED"

    runtime.emit("s", event("e13"))
    assert numbers(runtime.poll("s", neighbour["next_cursor"])) == [13]

    reset = runtime.poll("s", max=3)
    assert (numbers(reset), reset["dropped_count"]) == ([8, 9, 10], 8)
    gap = reset["events"][0]
    assert (gap["event_id"], gap["event_type"], gap["runtime_id"], gap["stream_id"]) == (
        "gap-8",
        "StreamGap",
        "pruned",
        "s",
    )
    assert gap["payload"] == {"expected_seq_no": 1, "observed_seq_no": 9, "dropped_count": 8}
    rest = runtime.poll("s", reset["next_cursor"])
    assert (numbers(rest), rest["dropped_count"]) == ([11, 12, 13], 0)
    end = runtime.poll("s", rest["next_cursor"])
    assert (end["events"], end["dropped_count"]) == ([], 0)
    runtime.emit("s", event("e14"), event("e3"))
    assert numbers(runtime.poll("s", end["next_cursor"])) == [14], "a pruned id does not commit again"


def test_t9_of_two_polls_at_once_one_is_told_that_its_cursor_expired(stack: Hub) -> None:
    runtime = negotiated(stack, "expires-once")
    runtime.emit("s", *(event(f"e{n}") for n in range(6)))
    cursor = runtime.poll("s", max=1)["next_cursor"]
    runtime.prune("s", 4)
    with ThreadPoolExecutor(3) as pool:
        told = sorted(pool.map(lambda _: code(runtime.ask_poll("s", cursor)), range(6)))
    assert told == ["SDK_RUNTIME_CURSOR_EXPIRED"] + ["SDK_RUNTIME_STREAM_DEGRADED"] * 5


def test_t10_limits_are_exact_and_a_large_event_wedges_nobody(stack: Hub) -> None:
    runtime = negotiated(
        stack, "limited", limits={"max_event_bytes": 300, "max_poll_events": 3, "max_extension_keys": 2}
    )

    def sized(id_: str, size: int) -> dict[str, Any]:
        return event(id_, payload={"x": "ü" * ((size - 8) // 2) + "y" * ((size - 8) % 2)})

    fits, large, many = runtime.emit(
        "s", sized("fits", 300), sized("large", 301), event("many", extensions={"a": 1, "b": 2, "c": 3})
    )
    assert fits["seq_no"] == 1
    assert (large["machine_code"], many["machine_code"]) == (
        "SDK_VALIDATION_EVENT_TOO_LARGE",
        "SDK_VALIDATION_MAX_EXTENSION_KEYS_EXCEEDED",
    )
    assert (large["details"]["max_event_bytes"], large["details"]["actual_bytes"]) == (300, 301)
    assert code(runtime.ask("POST", "/streams/s/events", json=sized("large", 301)), 413) == large["machine_code"]
    runtime.emit("s", *(event(f"e{n}") for n in range(5)))
    assert numbers(runtime.poll("s")) == [1, 2, 3], "without max, the limit"
    assert code(runtime.ask_poll("s", max=4), 400) == "SDK_VALIDATION_MAX_POLL_EVENTS_EXCEEDED"
    assert code(runtime.ask_poll("s", max=0), 400) == "SDK_VALIDATION_INVALID_ARGUMENT"

    runtime.negotiate(limits={"max_event_bytes": 300, "max_batch_bytes": 480})
    too_large = error(runtime.ask_poll("s"), 413)
    assert too_large["machine_code"] == "SDK_VALIDATION_BATCH_TOO_LARGE"
    assert too_large["details"]["seq_no"] == 1
    assert too_large["details"]["event_bytes"] > too_large["details"]["max_batch_bytes"] == 480
    runtime.negotiate(limits={"max_event_bytes": 300, "max_batch_bytes": too_large["details"]["event_bytes"]})
    batch = runtime.poll("s")
    assert numbers(batch) == [1], "what the error said is enough"
    assert numbers(runtime.poll("s", batch["next_cursor"])) == [2, 3]


def test_t11_status_is_a_projection_that_names_its_position(stack: Hub) -> None:
    runtime = negotiated(stack, "watched")
    assert runtime.good("GET", "/status")["streams"] == []
    runtime.emit("s", event("a"), event("b", event_type="ErrorRaised", severity="error"))
    runtime.emit("t", event("a", event_type="RuntimeStateChanged", payload={"to": "running"}))
    status = runtime.good("GET", "/status")
    assert [(one["stream_id"], one["seq_no"], one["complete"]) for one in status["streams"]] == [
        ("s", 2, True),
        ("t", 1, True),
    ]
    s, t = (one["projection"] for one in status["streams"])
    assert s["by_type"] == {"HealthSnapshot": 1, "ErrorRaised": 1}
    assert (s["last_error"]["event_id"], t["runtime_state"]["state"]) == ("b", "running")
    assert code(runtime.ask("GET", "/status", params={"rebuild": "true"}), 403) == "SDK_SECURITY_AUTHZ_DENIED"
    rebuilt = runtime.good("GET", "/status", params={"rebuild": "true"}, claims={"roles": EVERY_ROLE})
    assert rebuilt["streams"] == status["streams"]
    runtime.prune("s", 1)
    folded_again = runtime.good("GET", "/status", params={"rebuild": "true"}, claims={"roles": EVERY_ROLE})
    after = folded_again["streams"][0]
    assert (after["floor_seq_no"], after["from_seq_no"], after["complete"]) == (2, 2, False)
    assert after["projection"]["events"] == 1
