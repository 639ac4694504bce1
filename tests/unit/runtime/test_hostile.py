"""Whatever is in a request of any route, its caller is answered: never by a failure of the hub."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.runtime import rights
from tests.unit.runtime.rights import DOORS, Door, claims_for
from tests.unit.runtime.test_handlers import invoke
from tests.unit.runtime.test_rights import FUNCTIONS, Hub, aws, hub

__all__ = ["aws", "hub"]

TEXTS = ("", "\uffff", "\ud800", "..%2f?a#b\x00", "x" * 5_000, "*", "9" * 30, "{}")
VALUES: tuple[Any, ...] = (None, -1, 2**2000, "", "\uffff", ["\ud800"], {"a": [{}]})


def hostile(event: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The request with each of its parameters, and each place of its body, replaced by something that does not fit."""
    for part in ("pathParameters", "queryStringParameters"):
        for name, text in ((name, text) for name in event.get(part) or {} for text in TEXTS):
            yield f"{name}={text[:20]!r}", event | {part: event[part] | {name: text}}
    try:
        body = json.loads(event.get("body") or "")
    except ValueError:  # it has none, or one of another kind
        return
    for place in places(body):
        for value in VALUES:
            yield f"body{list(place)}={str(value)[:20]!r}", event | {"body": json.dumps(put(body, place, value))}


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    if isinstance(value, dict):
        for name in value:
            yield from places(value[name], (*place, name))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*place, 0))


def put(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    value = copy.copy(value)
    value[place[0]] = put(value[place[0]], place[1:], new)
    return value


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.route)
def test_a_request_with_anything_in_it_is_answered_by_no_failure(hub: Hub, door: Door) -> None:
    event = hub.filled_in(door.event)
    event["headers"]["authorization"] = f"Bearer {rights.token(**claims_for(door))}"
    failed = {}
    for what, changed in hostile(event):
        answered = invoke(FUNCTIONS[door.route], changed)
        if answered["statusCode"] >= 500:
            failed[what] = answered["body"]
    assert failed == {}
