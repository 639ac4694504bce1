"""The batch door on a whole hub, by the recorded bytes of a client that posts gzipped JSON (D8)."""

from __future__ import annotations

import gzip
import json
import socket
import uuid
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.e2e.conftest import Hub

RECORDED = (Path(__file__).parents[1] / "events/batch_request.http").read_bytes()
"""As the library requests sends it, headers and all."""
BATCH = "/api/v1/events/batch/"
GATEWAYS = ["http_url", "batch_url"]
"""The HTTP API hands on the bytes, the REST API unpacks them."""


def sent(hub: Hub, gateway: str, recorded: bytes = RECORDED, **claims: Any) -> tuple[int, Any]:
    """The recorded request to this hub: only its path, its host and its token are filled in."""
    address = urlsplit(getattr(hub.stack, gateway))
    token = hub.token(**claims)
    head, _, body = recorded.partition(b"\r\n\r\n")
    head = head.replace(BATCH.encode(), f"{address.path}{BATCH}".encode(), 1)
    head = head.replace(b"hub.example.com", address.netloc.encode()).replace(b"TOKEN", token.encode())
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        connection.sendall(head + b"\r\n\r\n" + body)
        response = HTTPResponse(connection)
        response.begin()
        return response.status, json.loads(response.read())


@pytest.mark.parametrize("gateway", GATEWAYS)
def test_the_recorded_request_of_a_client_in_use_is_taken_unmodified(stack: Hub, gateway: str) -> None:
    """D8"""
    ids = [event["event_id"] for event in json.loads(gzip.decompress(RECORDED.partition(b"\r\n\r\n")[2]))["events"]]
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    status, answer = sent(stack, gateway, tenant=tenant)
    assert (status, answer) == (200, {"results": [{"event_id": id_, "status": "success"} for id_ in ids]})
    status, answer = sent(stack, gateway, tenant=tenant)
    assert [one["status"] for one in answer["results"]] == ["duplicate"] * 2


def test_both_gateways_keep_the_same_content(stack: Hub) -> None:
    """D8: the bytes that were unpacked on the way are those that we unpack."""
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    told = [sent(stack, gateway, tenant=tenant)[1]["results"] for gateway in GATEWAYS]
    assert [[one["status"] for one in results] for results in told] == [["success"] * 2, ["duplicate"] * 2]


@pytest.mark.parametrize("gateway", GATEWAYS)
def test_a_refusal_names_the_error_and_each_event(stack: Hub, gateway: str) -> None:
    """D8"""
    url = f"{getattr(stack.stack, gateway)}{BATCH}"
    headers = {**stack.headers(), "content-type": "application/json", "content-encoding": "gzip"}
    bad = gzip.compress(json.dumps({"events": [{"event_id": "e1"}]}).encode())
    answer = httpx.post(url, content=bad, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["details"] == [
        {"event_id": "e1", "reason": "event_type must be a string, not null or missing"}
    ]
    nobody = httpx.post(url, content=bad, headers={**headers, "authorization": "Bearer a.b.c"})
    assert nobody.status_code == 401
    assert nobody.json()["error"]
    reader = {**headers, **stack.headers(roles=["consumer"])}
    assert httpx.post(url, content=bad, headers=reader).json()["error"]


@pytest.mark.parametrize("gateway", GATEWAYS)
def test_a_bomb_is_refused_by_both_gateways(stack: Hub, gateway: str) -> None:
    """D8"""
    headers = {**stack.headers(), "content-type": "application/json", "content-encoding": "gzip"}
    bomb = gzip.compress(b" " * (64 * 1024 * 1024))
    response = httpx.post(f"{getattr(stack.stack, gateway)}{BATCH}", content=bomb, headers=headers, timeout=60)
    assert response.status_code == 413
