"""What the taint test does to a hub: secrets through every door, wherever one could be taken in, refused or shown."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.e2e.evidence import Piece
from tests.e2e.streams_api import Runtime, event
from tests.e2e.tainted import Maker
from tests.e2e.test_socket import Socket

EVENTS = int(os.environ.get("MILLRACE_TAINT_EVENTS", "1000"))
BATCH = 20
SILENCE_SECONDS = 300
"""Other doors are tried for so long that a stream may be silent meanwhile."""
STREAMS = ("alpha", "beta")
PLACE = {"lat": 1, "lon": 2}
JSON = {"Content-Type": "application/json"}


@dataclass
class Heard:
    """Whatever the hub said to anybody: bodies, headers and frames."""

    pieces: list[Piece] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """The function of each call whose bearer it knew."""

    def answer(self, response: httpx.Response) -> None:
        path, body = response.url.path, response.read()
        if response.status_code != 401:
            self.calls.append(_function(response.request.method, path))
        is_raw = "/diagnostics/" in path and not path.endswith("/grants")
        place = "raw answers" if is_raw else f"answers of {path.rsplit('/', 1)[-1]}"
        self.pieces += [(place, body), (place, repr(list(response.headers.items())).encode())]
        assert response.status_code < 500, response.text

    def frames(self, socket: Socket, until: Any) -> None:
        """Read on until a message that `until` accepts."""
        while True:
            text = socket.raw.recv(timeout=SILENCE_SECONDS)
            self.pieces.append(("frames", text.encode() if isinstance(text, str) else text))
            if until(json.loads(text)):
                return


def _function(method: str, path: str) -> str:
    if "/markers" in path and "/streams/" not in path:
        return "markers"
    if "/diagnostics" in path or path.endswith("/audit"):
        return "diagnostics"
    return "emit" if method == "POST" else "poll"


def subscribe(heard: Heard, socket: Socket, maker: Maker, stream: str) -> None:
    asked = {"kind": "stream", "runtime_id": "tainted", "stream_id": stream, "start": "tail"}
    for wrong in ({**asked, "start": maker.taint()}, {"kind": maker.taint()}, {**asked, "cursor": maker.taint()}):
        socket.send("subscribe", {**wrong, **maker.taint()})
        heard.frames(socket, lambda message: message["type"] == "error")
    for text in (json.dumps({"type": "emit", "payload": maker.taint()}), json.dumps(maker.taint())[:-1], twice(maker)):
        socket.raw.send(text)
        heard.frames(socket, lambda message: message["type"] == "error")
    socket.send("subscribe", {**asked, **maker.taint()})
    heard.frames(socket, lambda message: message["type"] == "subscribed")


def twice(maker: Maker) -> str:
    """A secret object with one name twice, which is itself a part of the secret."""
    return f'{{"auth_token": {{"{maker.secret}-twice": 1, "{maker.secret}-twice": 2}}}}'


def emit_all(runtime: Runtime, maker: Maker) -> None:
    """Good and bad events side by side, from two writers that poll between their batches."""
    batches: list[tuple[str, list[tuple[Any, str]]]] = []
    made = 0
    while made < EVENTS:
        ids = [f"e{made + at}" for at in range(BATCH * 2 // 3)]
        bad = maker.rng.sample(maker.bad(f"bad{made}"), BATCH - len(ids))
        batch = [*((maker.good(id_), "") for id_ in ids), *bad]
        maker.rng.shuffle(batch)
        batches.append((STREAMS[len(batches) % len(STREAMS)], batch))
        made += len(batch)

    def write(mine: list[tuple[str, list[tuple[Any, str]]]]) -> None:
        cursors: dict[str, str] = {}
        for stream, batch in mine:
            results = runtime.emit(stream, *(sent for sent, _ in batch))
            assert [result.get("machine_code", "") for result in results] == [expected for _, expected in batch]
            polled = runtime.poll(stream, cursors.get(stream))
            cursors[stream] = polled["next_cursor"]

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, (batches[0::2], batches[1::2])))
    known = next(sent for sent, expected in batches[0][1] if not expected)
    (conflict,) = runtime.emit(STREAMS[0], maker.good(known["event_id"]))
    assert conflict["machine_code"] == "SDK_RUNTIME_CONFLICT"


def refuse_all(runtime: Runtime, maker: Maker) -> None:
    """Each refusal by itself, requests that are none, and the events that only a second look refuses."""
    events = f"/streams/{STREAMS[0]}/events"
    for sent, expected in maker.bad("alone"):
        response = runtime.ask("POST", events, json=sent)
        assert response.json()["machine_code"] == expected
    body = json.dumps(maker.good("unread"))
    for content in (body[:-1], body + "]", twice(maker), '{"auth_token": NaN, ' + body[1:], body + " " * 1_048_576):
        for path in (events, "/negotiate", "/markers", "/diagnostics/grants"):
            assert runtime.ask("POST", path, content=content, headers=JSON).status_code in (400, 413)
    for headers in ({"Content-Type": "text/plain"}, {**JSON, "Content-Encoding": "br"}):
        assert runtime.ask("POST", events, content=body, headers=headers).status_code == 400
    nobody: list[dict[str, Any]] = [{"roles": []}, {"partitions": []}, {"exp": 1}]
    for claims in nobody:
        assert runtime.ask("POST", events, claims=claims, content=body, headers=JSON).status_code in (401, 403)
    silent = Runtime(runtime.hub, "silent", runtime.claims, runtime.http)
    assert silent.ask("POST", events, json=maker.good("early")).status_code == 409
    for path in (events, "/status", "/markers", "/diagnostics/g", "/v1/audit"):
        assert runtime.ask("GET", path, params={"auth_token": f"{maker.secret}-asked"}).status_code == 400
    known: list[tuple[str, dict[str, Any]]] = [
        ("/negotiate", {"supported_contract_versions": [2]}),
        ("/diagnostics/grants", {"reason": "r", "ttl_s": 60}),
    ]
    for path, good in known:
        for wrong in (maker.taint(), {"scope": maker.taint()}, {"limits": maker.taint()}, {"profile": maker.taint()}):
            assert runtime.ask("POST", path, json={**good, **wrong}).status_code == 400
    refuse_late(runtime, maker)


def refuse_late(runtime: Runtime, maker: Maker) -> None:
    def moved(id_: str, to: str) -> dict[str, Any]:
        payload = {**maker.buried(2), "to": to}
        return maker.good(id_, event_type="DeliveryStateTransition", message_id="m", payload=payload)

    moves = [moved("m1", "in_flight"), moved("m2", "queued"), moved("m3", "failed"), moved("m4", "sent")]
    results = runtime.emit(STREAMS[1], *moves, event("fixed", payload={"a": 1, **maker.taint()}))
    states = ["", "SDK_RUNTIME_INVALID_STATE", "", "SDK_RUNTIME_ALREADY_TERMINAL", ""]
    assert [result.get("machine_code", "") for result in results] == states
    (again,) = runtime.emit(STREAMS[1], event("fixed", payload={"a": 1, **maker.taint()}))
    assert again["deduped"], "what a digest covers does not depend on a secret (P3)"


def mark_all(runtime: Runtime, maker: Maker) -> None:
    for number in range(20):
        extensions = {**maker.buried(number % 4), **maker.taint()}
        made = {"marker_id": f"m{number}", "label": maker.note(), "position": PLACE, "extensions": extensions}
        runtime.good("POST", "/markers", json={**made, **maker.taint()})
    again = {"marker_id": "m1", "label": "x", "position": PLACE, **maker.taint()}
    moves = [
        {"position": PLACE, "expected_revision": 1, **maker.taint()},
        {"position": {**PLACE, **maker.taint()}, "expected_revision": 1},
        {"position": PLACE, "expected_revision": maker.taint()},
    ]
    assert runtime.ask("POST", "/markers", json=again).status_code == 409
    for wrong in ({"label": maker.taint()}, {"position": maker.taint()}, {"extensions": [maker.taint()]}):
        assert runtime.ask("POST", "/markers", json={"label": "x", "position": PLACE, **wrong}).status_code == 400
    for move in moves:
        assert runtime.ask("PATCH", "/markers/m1/position", json=move).status_code == 400
    extended = {"position": PLACE, "expected_revision": 1, "extensions": {**maker.buried(2), **maker.taint()}}
    runtime.good("PATCH", "/markers/m1/position", json=extended)
    wrong_query = {"expected_revision": 1, "auth_token": f"{maker.secret}-deleted"}
    assert runtime.ask("DELETE", "/markers/m2", params=wrong_query).status_code == 400
    runtime.good("DELETE", "/markers/m2", params={"expected_revision": 1})


def is_last(message: Any) -> bool:
    return bool(message["payload"].get("event", {}).get("event_id") == "last")


def listen_to_all(runtime: Runtime, grant_id: str) -> None:
    """Consumers of every other kind; what they are told is recorded on the way."""
    for stream in (*STREAMS, "markers"):
        assert runtime.events(stream)
    for rebuild in ("false", "true"):
        assert runtime.good("GET", "/status", params={"rebuild": rebuild})["streams"]
    assert runtime.good("GET", "/markers")["markers"]
    page = runtime.good("GET", f"/diagnostics/{grant_id}", params={"max": 100})
    while page["next_after"]:
        page = runtime.good("GET", f"/diagnostics/{grant_id}", params={"max": 100, "after": page["next_after"]})
    runtime.good("GET", "/diagnostics/grants")
    assert runtime.good("GET", "/v1/audit", params={"max": 500})["events"]
