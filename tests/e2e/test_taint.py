"""P2: secret values go nowhere. Many are sent; then all that the hub keeps and has said is searched for them."""

from __future__ import annotations

import base64
import random
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx

from tests.e2e.conftest import Hub
from tests.e2e.evidence import evidence, log_of, search
from tests.e2e.planted import planted
from tests.e2e.streams_api import EVERY_ROLE, negotiated, now_ms, with_http
from tests.e2e.taint_traffic import (
    EVENTS,
    STREAMS,
    Heard,
    emit_all,
    is_last,
    listen_to_all,
    mark_all,
    refuse_all,
    subscribe,
)
from tests.e2e.tainted import Maker, mark
from tests.e2e.test_socket import opened

FUNCTIONS = ("emit", "poll", "markers", "diagnostics")


def test_p2_no_secret_value_is_found_anywhere(stack: Hub) -> None:
    """And the same search finds public values where they belong, raw ones under their grant alone, and planted ones."""
    maker, heard, tenant, plant, begun_ms = Maker.of(seed=7), Heard(), f"taint-{mark()}", mark(), now_ms()
    with ExitStack() as cleanup:
        hooks: Any = {"response": [heard.answer]}
        http = cleanup.enter_context(httpx.Client(base_url=stack.http_url, timeout=60, event_hooks=hooks))
        claims = {"tenant": tenant, "roles": EVERY_ROLE}
        runtime = with_http(negotiated(stack, "tainted", claims), http)
        grant = runtime.good("POST", "/diagnostics/grants", json={"reason": "the taint test", "ttl_s": 3600})
        sockets = [cleanup.enter_context(opened(stack, "demo", **claims)) for _ in STREAMS]
        for socket, stream in zip(sockets, STREAMS, strict=True):
            subscribe(heard, socket, maker, stream)
        pool = cleanup.enter_context(ThreadPoolExecutor(len(sockets)))
        readers = [pool.submit(heard.frames, socket, is_last) for socket in sockets]
        emit_all(runtime, maker)
        refuse_all(runtime, maker)
        mark_all(runtime, maker)
        for stream in STREAMS:
            runtime.emit(stream, maker.good("last"))
        for reader in readers:
            reader.result()
        listen_to_all(runtime, grant["grant_id"])
        wait_for_logs(stack, heard, tenant, begun_ms)
        plants = cleanup.enter_context(planted(stack, plant))
        kept = list(evidence(stack, begun_ms))
    marks = {"text": maker.secret, "number": maker.secret_number, "public": maker.public, "raw": maker.raw}
    found = search([*heard.pieces, *kept], {**marks, "tenant": tenant, "plant": plant})
    assert maker.made > EVENTS
    assert (found["text"], found["number"]) == (set(), set())
    hub = stack.stack
    log, functions = hub.tables["log"], {f"log {hub.functions[function]}" for function in FUNCTIONS}
    answers = {"answers of events", "answers of status", "answers of markers"}
    assert found["public"] >= {f"table {log}", f"table {hub.tables['state']}", "frames", *answers}
    assert found["tenant"] >= {f"table {log}", f"table {hub.tables['claims']}", f"changes of {log}", *functions}
    assert found["raw"] == {"raw answers"}, "a sensitive value is shown under a grant, and nowhere else"
    assert found["plant"] == plants
    logged = [line for place, line in kept if place in functions]
    assert any(b'"_aws"' in line and b"EventsCommitted" in line for line in logged), "no metrics"


def wait_for_logs(stack: Hub, heard: Heard, tenant: str, since_ms: int) -> None:
    """Each call logs one line that names the tenant. The emulator shows a late one with its process's next call."""
    doors = {
        "emit": ("POST", "/negotiate"),
        "poll": ("GET", "/status"),
        "markers": ("GET", "/markers"),
        "diagnostics": ("GET", "/diagnostics/grants"),
    }
    with ThreadPoolExecutor(8) as pool:
        for function, (method, path) in doors.items():
            group, calls, tries = f"/aws/lambda/{stack.stack.functions[function]}", heard.calls.count(function), 0
            while (lines := _naming(tenant, log_of(stack, group, since_ms))) < calls:
                tries += 1
                assert tries < 100, f"{function} logged {lines} of {calls} calls"
                list(pool.map(stack.http.request, [method] * 8, [f"/v1/runtimes/r{path}"] * 8))


def _naming(tenant: str, lines: Iterable[str]) -> int:
    return sum(f'"tenant":"{tenant}"' in line for line in lines)


def test_the_search_sees_through_every_encoding() -> None:
    """A mark inside a longer text, at any place of a base64 group, is found; a text without it is not."""
    wanted, rng = mark(), random.Random(3)
    for before in range(12):
        text = rng.randbytes(before) + wanted.encode() + rng.randbytes(before % 5)
        hidden = [text, base64.b64encode(text), base64.urlsafe_b64encode(text), text.hex().encode(), text.upper()]
        hidden += [zlib.compress(text), b"\x02" + zlib.compress(text)]
        for at, data in enumerate(hidden):
            assert search([("here", data)], {"it": wanted}) == {"it": {"here"}}, (before, at)
            assert search([("here", data)], {"it": wanted[::-1]}) == {"it": set()}
