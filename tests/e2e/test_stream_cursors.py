"""Cursors over HTTP (T6): whatever this stream's polls did not return is refused, and nothing resets silently."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor

from tests.e2e.conftest import Hub
from tests.e2e.streams_api import code, event, negotiated, numbers, rotate_stream_secret

FLIP_EVERY = 5
"""A cursor has about 300 bits; every 5th is flipped, so that each place within a byte is met."""


def test_t6_a_cursor_works_nowhere_but_in_its_own_stream(stack: Hub) -> None:
    one, other = negotiated(stack, "cursor-one"), negotiated(stack, "cursor-other")
    elsewhere = negotiated(stack, "cursor-one", {"tenant": "another-tenant"})
    for runtime in (one, other, elsewhere):
        runtime.emit("s", event("a"), event("b"))
        runtime.emit("t", event("a"), event("b"))
        for number in range(2):
            runtime.good("POST", "/markers", json={"label": f"m{number}", "position": {"lat": 0, "lon": 0}})
    cursors = {
        "runtime": other.poll("s", max=1)["next_cursor"],
        "stream": one.poll("t", max=1)["next_cursor"],
        "tenant": elsewhere.poll("s", max=1)["next_cursor"],
        "marker list": one.good("GET", "/markers", params={"max": 1})["next_cursor"],
    }
    for foreign, cursor in cursors.items():
        assert code(one.ask_poll("s", cursor), 400) == "SDK_RUNTIME_INVALID_CURSOR", foreign
    mine = one.poll("s", max=1)["next_cursor"]
    for path in ("/markers", "/streams/t/events"):
        response = one.ask("GET", path, params={"cursor": mine})
        assert code(response, 400) == "SDK_RUNTIME_INVALID_CURSOR", path
    assert numbers(one.poll("s", mine)) == [2]


def test_t6_a_cursor_with_any_bit_changed_is_refused(stack: Hub) -> None:
    runtime = negotiated(stack, "flipped")
    runtime.emit("s", *(event(f"e{n}") for n in range(4)))
    cursor = runtime.poll("s", max=2)["next_cursor"]
    content = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    flipped = [
        base64.urlsafe_b64encode(
            bytes(byte ^ (1 << bit % 8) if at == bit // 8 else byte for at, byte in enumerate(content))
        )
        .decode()
        .rstrip("=")
        for bit in range(0, len(content) * 8, FLIP_EVERY)
    ]
    cut = [cursor[:length] for length in (0, 1, 2, 5, 10, 20, len(cursor) - 2, len(cursor) - 1)]
    longer = [cursor + tail for tail in ("=", "A", "AA", "AAAA", "\n", " ", "\u0000", "é")] + [cursor * 2, cursor * 50]
    odd = ["null", "0", "-1", "true", "../../etc", "😀", "A" * 50, "%00", cursor.swapcase(), cursor[::-1]]
    hostile = [*flipped, *cut, *longer, *odd]
    assert cursor not in hostile
    with ThreadPoolExecutor(4) as pool:
        for text, response in zip(hostile, pool.map(lambda text: runtime.ask_poll("s", text), hostile), strict=True):
            assert code(response, 400) == "SDK_RUNTIME_INVALID_CURSOR", text
    assert numbers(runtime.poll("s", cursor)) == [3, 4], "nothing hostile moved or degraded the subscription"


def test_t6_a_cursor_outlives_one_rotation_of_the_secret_and_not_two(stack: Hub) -> None:
    runtime = negotiated(stack, "rotated")
    runtime.emit("s", *(event(f"e{n}") for n in range(6)))
    old = runtime.poll("s", max=1)["next_cursor"]
    listed = [{"label": f"m{number}", "position": {"lat": 0, "lon": 0}} for number in range(2)]
    for marker in listed:
        runtime.good("POST", "/markers", json=marker)
    old_list = runtime.good("GET", "/markers", params={"max": 1})["next_cursor"]

    rotate_stream_secret(stack)
    going_on = runtime.poll("s", old, max=2)
    assert numbers(going_on) == [2, 3]
    assert len(runtime.good("GET", "/markers", params={"cursor": old_list})["markers"]) == 1

    rotate_stream_secret(stack)
    assert code(runtime.ask_poll("s", old), 400) == "SDK_RUNTIME_INVALID_CURSOR"
    assert code(runtime.ask("GET", "/markers", params={"cursor": old_list}), 400) == "SDK_RUNTIME_INVALID_CURSOR"
    assert numbers(runtime.poll("s", going_on["next_cursor"])) == [4, 5, 6]
