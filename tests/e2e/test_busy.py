"""A busy ledger on a whole hub: many writers of single events, at every door, and connections that pipeline."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from infra.openapi.streams import EXTENSION
from tests.e2e.api import item, log_lines, sync_all
from tests.e2e.conftest import Hub
from tests.e2e.lake import EVENT, session_event
from tests.e2e.test_socket import Socket, opened

WRITERS = 4
EACH = 4
PIPELINED = 6


def until_taken(hub: Hub, path: str, body: Any, **claims: Any) -> Any:
    """As a client should: the same ids again when the hub is busy. A busy ledger never answers with a 5xx."""
    for _ in range(100):
        response = hub.http.post(path, json=body, headers=hub.headers(**claims))
        if response.status_code != httpx.codes.TOO_MANY_REQUESTS:
            assert response.is_success, response.text
            return response.json()
        assert int(response.headers["Retry-After"]) >= 1
    raise AssertionError("refused a hundred times")


@contextmanager
def crowd(hub: Hub, project: str) -> Iterator[dict[str, int]]:
    """Writers of single events into one project until the block ends: what they were told, id → position."""
    over, told = threading.Event(), dict[str, int]()

    def write(number: int) -> None:
        count = 0
        while not over.is_set():
            count += 1
            events = [item(f"crowd-{number}-{count}", count)]
            path = f"/v1/projects/{project}/submit_events"
            (result,) = until_taken(hub, path, {"events": events}, projects=[project])["results"]
            told[result["id"]] = result["committed_id"]

    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(write, number) for number in range(WRITERS)]
        try:
            yield told
        finally:
            over.set()
        for writer in writers:
            writer.result()


def snake(number: int) -> tuple[dict[str, Any], str]:
    return {"events": [item(f"snake-{number}", number)]}, "committed_id"


def camel(number: int) -> tuple[dict[str, Any], str]:
    event = {"id": f"camel-{number}", "partitions": ["p1"], "type": "t", "payload": number}
    return {"events": [event]}, "committedId"


def scoped(number: int) -> tuple[dict[str, Any], str]:
    meta = {"clientId": "C1", "clientTs": number}
    event = {"id": f"scoped-{number}", "partition": "p1", "projectId": "busy", "type": "t", "schemaVersion": 1}
    return {"events": [{**event, "payload": number, "meta": meta}]}, "committedId"


Submit = Callable[[int], tuple[dict[str, Any], str]]


@contextmanager
def connected(hub: Hub, project: str, submit: Submit) -> Iterator[tuple[Socket, dict[str, str], str]]:
    """A socket that speaks its dialect, the words its messages have in common, and its word for a message's id."""
    if submit is snake:
        with opened(hub, project) as socket:
            yield socket, {"protocol_version": "1.0"}, "msg_id"
        return
    with opened(hub) as socket:
        who = {"token": hub.token(projects=[project]), "clientId": "C1"}
        payload = {**who, "projectId": project} if submit is scoped else who
        words = {"protocolVersion": "1.0"}
        socket.raw.send(json.dumps({"type": "connect", **words, "payload": payload}))
        assert socket.receive()["type"] == "connected"
        yield socket, words, "msgId"


def pipelined(hub: Hub, project: str, submit: Submit) -> list[int]:
    """The positions of submits that one connection sent without waiting, whose answers came in the order sent."""
    with connected(hub, project, submit) as (socket, words, msg_id):
        for number in range(PIPELINED):
            payload, _ = submit(number)
            socket.raw.send(json.dumps({"type": "submit_events", **words, msg_id: str(number), "payload": payload}))
        answers = [socket.answer() for _ in range(PIPELINED)]
    assert [answer["type"] for answer in answers] == ["submit_events_result"] * PIPELINED
    assert [answer[msg_id] for answer in answers] == [str(number) for number in range(PIPELINED)]
    results = [answer["payload"]["results"][0] for answer in answers]
    assert [result["status"] for result in results] == ["committed"] * PIPELINED
    return [result[submit(0)[1]] for result in results]


def test_s12_s16_connections_that_pipeline_into_a_busy_ledger_are_answered_in_order_in_their_own_words(
    stack: Hub,
) -> None:
    dialects: list[Submit] = [snake, camel, scoped]
    with crowd(stack, "busy") as told, ThreadPoolExecutor(len(dialects)) as pool:
        found = list(pool.map(lambda submit: pipelined(stack, "busy", submit), dialects))
    for positions in found:
        assert positions == sorted(positions), "sent first, committed first"
    events = sync_all(stack, "busy", limit=1000)
    assert [event["committed_id"] for event in events] == list(range(1, len(events) + 1))
    stored = {event["id"]: event["committed_id"] for event in events}
    assert told.items() <= stored.items()
    assert len(stored) == len(told) + PIPELINED * len(dialects)
    assert any('"RequestsWaited"' in line for line in log_lines(stack, "submit")), "nobody ever waited: not busy"


def published(hub: Hub, number: int) -> int:
    answer = until_taken(hub, "/v1/realtime/events", session_event(f"busy-{number}", "s-busy"))
    return int(answer["event"]["sequence"])


def emitted(hub: Hub, number: int) -> int:
    body = {**EXTENSION, "event_id": f"busy-{number}"}
    return int(until_taken(hub, "/v1/runtimes/rt-busy/streams/main/events", body)["seq_no"])


def recorded(hub: Hub, number: int) -> int:
    body = {**EVENT, "idempotency_key": f"busy-{number}"}
    return int(until_taken(hub, "/v1/catalog/busy/events", body)["sequence_position"])


@pytest.mark.parametrize("write", [published, emitted, recorded])
def test_every_door_takes_many_writers_of_single_events(stack: Hub, write: Callable[[Hub, int], int]) -> None:
    stack.http.post(
        "/v1/runtimes/rt-busy/negotiate", json={"supported_contract_versions": [2]}, headers=stack.headers()
    )
    with ThreadPoolExecutor(WRITERS) as pool:
        positions = list(pool.map(lambda number: write(stack, number), range(WRITERS * EACH)))
    assert sorted(positions) == list(range(1, WRITERS * EACH + 1))
    assert write(stack, 0) == positions[0], "the same answer for the same id"
