"""The WebSocket on a whole hub: real sockets, the emulator's gateway, functions and stream."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from millrace.live.domain.messages import CONNECT_SECONDS
from tests.e2e.api import item, submit
from tests.e2e.conftest import Hub
from tests.e2e.recorded_clients import FIRST, SECOND, compared

WAIT = 30


class Socket:
    """A client's end, blocking; broadcasts that come between answers are kept."""

    def __init__(self, raw: ClientConnection) -> None:
        self.raw = raw
        self.kept: list[dict[str, Any]] = []

    def send(self, kind: str, payload: Any, **envelope: Any) -> None:
        self.raw.send(json.dumps({"type": kind, "protocol_version": "1.0", "payload": payload, **envelope}))

    def receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.raw.recv(timeout=WAIT))
        return message

    def answer(self) -> dict[str, Any]:
        """The next message that is no broadcast."""
        while (message := self.receive())["type"] == "event_broadcast":
            self.kept.append(message)
        return message

    def ask(self, kind: str, payload: Any, **envelope: Any) -> dict[str, Any]:
        self.send(kind, payload, **envelope)
        return self.answer()

    def broadcast(self) -> dict[str, Any]:
        message = self.kept.pop(0) if self.kept else self.receive()
        assert message["type"] == "event_broadcast", message
        payload: dict[str, Any] = message["payload"]
        return payload

    def is_closed(self) -> bool:
        try:
            while True:
                self.raw.recv(timeout=WAIT)
        except ConnectionClosed:
            return True


@contextmanager
def opened(hub: Hub, project: str | None = None, **claims: Any) -> Iterator[Socket]:
    """Connected to a project, or not yet connected when none is given."""
    with connect(hub.ws_url, open_timeout=WAIT, max_size=None, ping_interval=None) as raw:
        socket = Socket(raw)
        if project is not None:
            token = hub.token(projects=[project], **claims)
            answer = socket.ask("connect", {"token": token, "client_id": claims.get("client_id", "C1")})
            assert answer["type"] == "connected", answer
        yield socket


def test_a_socket_that_does_not_say_who_it_is_in_time_is_closed(stack: Hub) -> None:
    begun = time.monotonic()
    with opened(stack) as silent, opened(stack, "silent") as known:
        assert silent.is_closed()
        assert time.monotonic() - begun >= CONNECT_SECONDS
        assert known.ask("heartbeat", {})["type"] == "heartbeat_ack"


def test_s9_an_event_submitted_on_one_socket_is_seen_on_the_others(stack: Hub) -> None:
    with opened(stack, "live1") as one, opened(stack, "live1") as two, opened(stack, "live1") as elsewhere:
        for socket, partition in ((one, "p1"), (two, "p1"), (elsewhere, "p2")):
            page = socket.ask("sync", {"since_committed_id": 0, "partitions": [partition]})
            assert page["payload"]["has_more"] is False
        results = one.ask("submit_events", {"events": [item("a", 1), item("b", 2)]}, msg_id="m7")
        assert results["msg_id"] == "m7"
        assert [r["committed_id"] for r in results["payload"]["results"]] == [1, 2]
        assert [two.broadcast()["committed_id"] for _ in range(2)] == [1, 2]
        submit(stack, "live1", item("c", 3), item("d", 4, partitions=["p2"]))
        assert one.broadcast()["id"] == "c", "its own events must not come back to the origin"
        assert two.broadcast()["event"]["payload"] == 3
        assert elsewhere.broadcast()["id"] == "d"


def test_s10_a_retry_after_a_lost_answer_gets_the_first_result(stack: Hub) -> None:
    with opened(stack, "live2") as one:
        one.send("submit_events", {"events": [item("a", 1)]})
    with opened(stack, "live2") as again:
        retried = again.ask("submit_events", {"events": [item("a", 1)]})["payload"]["results"]
        page = again.ask("sync", {"since_committed_id": 0})["payload"]
    assert [(r["status"], r["committed_id"]) for r in retried] == [("committed", 1)]
    assert [event["id"] for event in page["events"]] == ["a"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("garbage", "bad_request"),
        (b"\x00\xff\x01binary", "bad_request"),
        ("x" * 1_000_000, "bad_request"),
        ('{"type":"sync","protocol_version":"1.0","payload":{"since_committed_id":0}}', "bad_request"),
    ],
)
def test_s15_nonsense_gets_an_answer_and_hurts_nobody_else(stack: Hub, text: str | bytes, code: str) -> None:
    with opened(stack, "calm") as bystander, opened(stack) as noisy:
        noisy.raw.send(text)
        assert noisy.answer()["payload"]["code"] == code
        assert bystander.ask("heartbeat", {})["type"] == "heartbeat_ack"
        assert noisy.ask("connect", {"token": stack.token(), "client_id": "C1"})["type"] == "connected"


@pytest.mark.parametrize(
    ("claims", "client_id", "version", "code"),
    [
        ({}, "somebody-else", "1.0", "auth_failed"),
        ({"exp": 1}, "C1", "1.0", "auth_failed"),
        ({"aud": "them"}, "C1", "1.0", "auth_failed"),
        ({}, "C1", "9.9", "protocol_version_unsupported"),
    ],
)
def test_s15_what_closes_a_connection_closes_it(
    stack: Hub, claims: dict[str, Any], client_id: str, version: str, code: str
) -> None:
    with opened(stack) as socket:
        payload = {"token": stack.token(**claims), "client_id": client_id}
        answer = socket.ask("connect", payload, protocol_version=version)
        assert answer["payload"]["code"] == code
        assert socket.is_closed()


def test_a_token_that_expires_mid_connection_closes_it(stack: Hub) -> None:
    with opened(stack, "expiring", exp=int(time.time()) + 6) as socket:
        assert socket.ask("sync", {"since_committed_id": 0})["type"] == "sync_response"
        deadline = time.monotonic() + WAIT
        while (answer := socket.ask("heartbeat", {}))["type"] == "heartbeat_ack" and time.monotonic() < deadline:
            pass
        assert answer["payload"]["code"] == "auth_failed"
        assert socket.is_closed()


def test_s7_an_unauthorised_partition_gives_forbidden_and_not_one_event(stack: Hub) -> None:
    submit(stack, "guarded", item("a", "hidden", partitions=["theirs"]))
    with opened(stack, "guarded", partitions=["mine"]) as socket:
        answer = socket.ask("sync", {"since_committed_id": 0, "partitions": ["mine", "theirs"]})
        assert answer["payload"]["code"] == "forbidden"
        submit(stack, "guarded", item("b", "hidden", partitions=["theirs"]), item("c", 1, partitions=["mine"]))
        assert (
            socket.ask("sync", {"since_committed_id": 0, "partitions": ["mine"]})["payload"]["events"][0]["id"] == "c"
        )


def test_s16_a_camel_case_client_is_spoken_to_in_its_own_words(stack: Hub) -> None:
    def say(socket: Socket, kind: str, payload: Any) -> dict[str, Any]:
        socket.raw.send(json.dumps({"type": kind, "protocolVersion": "1.0", "msgId": "m", "payload": payload}))
        return socket.answer()

    token = stack.token(projects=["camel"])
    with opened(stack) as socket, opened(stack, "camel") as snake:
        connected = say(socket, "connect", {"token": token, "clientId": "C1", "projectId": "camel"})
        assert (connected["payload"]["projectLastCommittedId"], connected["msgId"]) == (0, "m")
        say(socket, "sync", {"projectId": "camel", "sinceCommittedId": 0})
        snake.ask("sync", {"since_committed_id": 0})
        meta = {"clientId": "C1", "clientTs": 1234.5}
        flat = {
            "id": "x",
            "partition": "p",
            "projectId": "camel",
            "type": "t",
            "schemaVersion": 3,
            "payload": {"aB": 1},
        }
        results = say(socket, "submit_events", {"events": [{**flat, "meta": meta}]})["payload"]["results"]
        assert (results[0]["status"], results[0]["committedId"]) == ("committed", 1)
        heard = snake.broadcast()
        assert (heard["event"]["type"], heard["event"]["payload"]) == ("t", {"aB": 1})
        page = say(socket, "sync", {"projectId": "camel", "sinceCommittedId": 0})["payload"]
        (event,) = page["events"]
        assert (event["payload"], event["schemaVersion"], event["meta"]) == ({"aB": 1}, 3, meta)
        submit(stack, "camel", item("y", {"cD": 2}))
        broadcast = socket.receive()
        assert (broadcast["type"], broadcast["payload"]["payload"]) == ("event_broadcast", {"cD": 2})


@pytest.mark.parametrize(
    ("recorded", "project", "connected", "stamp"),
    [
        (FIRST, "recorded-1", {"clientId": "C1", "globalLastCommittedId": 0}, "created"),
        (SECOND, "recorded-2", {"clientId": "C1", "projectId": "recorded-2", "projectLastCommittedId": 0}, "serverTs"),
    ],
    ids=["first", "second"],
)
def test_s16_recorded_clients_get_back_what_they_sent(
    stack: Hub, recorded: dict[str, str], project: str, connected: dict[str, Any], stamp: str
) -> None:
    """A client keeps what it sent under the number of the result, and holds every later copy against it."""

    def say(socket: Socket, kind: str) -> Any:
        socket.raw.send(recorded[kind].replace("TOKEN", token))
        answer = socket.answer()
        assert answer["msgId"] == json.loads(recorded[kind])["msgId"]
        return answer["payload"]

    token = stack.token(projects=[project])
    sent = json.loads(recorded["submit_events"])["payload"]["events"]
    with opened(stack) as one, opened(stack) as other:
        for socket in (one, other):
            told = say(socket, "connect")
            ours = {"serverTime", "limits", "capabilities"}
            assert {name: value for name, value in told.items() if name not in ours} == connected
            assert say(socket, "sync")["events"] == []
        results = say(one, "submit_events")["results"]
        assert [(r["id"], r["status"], r["committedId"]) for r in results] == [
            ("evt-1", "committed", 1),
            ("evt-2", "committed", 2),
        ]
        heard = [other.broadcast() for _ in sent]
        overlapping = say(one, "sync")["events"]
        for events in (heard, overlapping):
            assert [(e["committedId"], e[stamp]) for e in events] == [(r["committedId"], r[stamp]) for r in results]
            for item, event in zip(sent, events, strict=True):
                assert compared(event).keys() == item.keys()
                partitions = {"partitions": sorted(item["partitions"])} if "partitions" in item else {}
                assert compared(event) == {**item, **partitions}
        assert say(one, "submit_events")["results"] == results, "S5: a retry gets the first results"


def test_gone_connections_are_forgotten(stack: Hub) -> None:
    """A client that vanishes leaves nothing that fan-out would find."""
    with opened(stack, "gone") as stays:
        stays.ask("sync", {"since_committed_id": 0})
        with opened(stack, "gone") as leaves:
            leaves.ask("sync", {"since_committed_id": 0, "partitions": ["p1", "p2"]})
        submit(stack, "gone", item("a"))
        assert stays.broadcast()["id"] == "a"
        deadline = time.monotonic() + WAIT
        while (left := rows_of(stack, "gone")) != 1 and time.monotonic() < deadline:
            pass
        assert left == 1


def rows_of(stack: Hub, project: str) -> int:
    """Subscription rows that a fan-out of this project could find."""
    rows = stack.client("dynamodb").scan(TableName=stack.tables["connections"], ConsistentRead=True)["Items"]
    ledger = f"sync#default#{project}"
    return sum(row["p"]["S"] == f"w#{ledger}" or row["p"]["S"].startswith(f"l#{ledger}#") for row in rows)
