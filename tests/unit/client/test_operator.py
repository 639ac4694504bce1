"""The client's `Operator` asks the doors for operators, page by page."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from millrace_client import Operator, Refused

LAG = {"position": 1, "lag_events": 2, "lag_seconds": 3.5}
LEDGER = {
    "contract": "streams",
    "scope": "rt-1:main",
    "head": 3,
    "floor": 1,
    "events": 3,
    "last_commit_ms": 7,
    "stages": {"fan_out": LAG, "archive": LAG},
    "targets": [{"target_id": "hub", **LAG}],
}
EVENT = {
    "position": 2,
    "id": "a",
    "committed_ms": 7,
    "type": "T",
    "partitions": ["p"],
    "by": {"client_id": "C1"},
    "pruned": False,
    "bytes": 2,
    "content": {},
}


class Asked(list[str]):
    """Paths with their queries, in order."""


def hub(answer: Callable[[httpx.Request], Any], asked: Asked) -> Operator:
    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.raw_path.decode())
        told = answer(request)
        status = 403 if "code" in told else 200
        return httpx.Response(status, content=json.dumps(told))

    return Operator("http://hub", "token", transport=httpx.MockTransport(handle))


def test_ledgers_are_listed_page_by_page() -> None:
    asked = Asked()

    def answer(request: httpx.Request) -> Any:
        last = request.url.params.get("after") == "rt-1:main"
        return {"ledgers": [] if last else [LEDGER], "next": None if last else "rt-1:main"}

    with hub(answer, asked) as operator:
        (ledger,) = operator.ledgers.list("streams", "rt", page_size=1)
    assert (ledger.scope, ledger.stages["fan_out"].lag_seconds, ledger.targets["hub"].position) == ("rt-1:main", 3.5, 1)
    assert asked == [
        "/v1/ledgers?contract=streams&prefix=rt&max=1",
        "/v1/ledgers?contract=streams&prefix=rt&after=rt-1%3Amain&max=1",
    ]


def test_one_ledger_is_asked_for_by_its_scope() -> None:
    asked = Asked()
    with hub(lambda _: LEDGER, asked) as operator:
        assert operator.ledgers.get("streams", "rt-1:a%3Ab").head == 3
    assert asked == ["/v1/ledgers/streams/rt-1%3Aa%253Ab"]


def test_events_are_read_to_the_head() -> None:
    asked = Asked()

    def answer(request: httpx.Request) -> Any:
        after = int(request.url.params["after"])
        return {"events": [EVENT] if after == 0 else [], "next_after": after + 2, "head": 4, "floor": 1}

    with hub(answer, asked) as operator:
        (event,) = operator.events.list("sync", "demo", type="T")
    assert (event.position, event.client_id, event.content) == (2, "C1", {})
    assert asked == [f"/v1/ledgers/sync/demo/events?after={after}&type=T" for after in (0, 2)]


def test_an_event_is_found_with_its_deliveries() -> None:
    asked = Asked()
    delivery = {
        "target_id": "hub", "state": "delivered", "attempts": 1, "first_ms": 1, "last_ms": 1, "next_ms": None,
        "error": None,
    }  # fmt: skip
    with hub(lambda _: {"event": EVENT, "deliveries": [delivery]}, asked) as operator:
        event, (found,) = operator.events.find("sync", "demo", "a b")
    assert (event.id, found.target_id, found.state) == ("a", "hub", "delivered")
    assert asked == ["/v1/ledgers/sync/demo/event?id=a+b"]


def test_the_audit_is_read_in_both_directions() -> None:
    asked = Asked()
    entry = {"position": 1, "ts_ms": 7, "who": "ops", "action": "target_put", "outcome": "done", "target_id": "hub"}

    def answer(request: httpx.Request) -> Any:
        if "order" in request.url.params:
            last = "before" in request.url.params
            return {"events": [entry] if last else [], "next_before": 0 if last else 5}
        first = request.url.params["after"] == "0"
        return {"events": [entry] if first else [], "next_after": 1}

    with hub(answer, asked) as operator:
        (backwards,) = operator.audit.newest(action="target_put")
        (forwards,) = operator.audit.after()
    assert backwards == forwards
    assert (backwards.outcome, backwards.fields["target_id"]) == ("done", "hub")


def test_who_is_no_operator_is_refused() -> None:
    with (
        hub(lambda _: {"code": "forbidden", "message": "No.", "details": {}}, Asked()) as operator,
        pytest.raises(Refused, match="No"),
    ):
        operator.ledgers.get("sync", "demo")
