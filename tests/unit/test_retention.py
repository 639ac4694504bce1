"""C8: retention requests are read strictly; the rule itself is proved with the jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millrace.domain.errors import BadRequest
from millrace.domain.retention import Policy, Request, may_go

LEDGER = "sync#acme#demo"


def test_a_request_is_read_from_json() -> None:
    content = {"policies": [{"ledger": LEDGER, "partition": "p", "max_age_days": 3}], "ceilings": {LEDGER: 9}}
    assert Request.parse(json.dumps(content).encode()) == Request([Policy(LEDGER, "p", max_age_days=3)], {LEDGER: 9})


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ([], "request"),
        ({"policies": []}, "request"),
        ({"policies": {}, "ceilings": {}}, "request"),
        ({"policies": [5], "ceilings": {}}, "policies[0]"),
        ({"policies": [{}], "ceilings": {}}, "policies[0].ledger"),
        ({"policies": [{"ledger": "l", "partition": 5}], "ceilings": {}}, "policies[0].partition"),
        ({"policies": [{"ledger": "l", "advance_to": -1}], "ceilings": {}}, "policies[0].advance_to"),
        ({"policies": [{"ledger": "l", "max_events": True}], "ceilings": {}}, "policies[0].max_events"),
        ({"policies": [{"ledger": "l", "advanced": 1}], "ceilings": {}}, "policies[0].advanced"),
        ({"policies": [], "ceilings": {"l": "5"}}, "ceilings.l"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_with_the_field(content: Any, field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        Request.parse(json.dumps(content).encode())
    assert refused.value.details["field"] == field


def test_a_request_that_is_not_json_is_refused() -> None:
    with pytest.raises(BadRequest, match="not JSON"):
        Request.parse(b"{")


def test_an_event_without_partitions_is_in_one_implicit_partition() -> None:
    assert may_go([], 3, {"": 3}, 3)
    assert not may_go([], 3, {"p": 9}, 9)
    assert not may_go([], 3, {"": 3}, 2)
    assert not may_go(["p", "q"], 3, {"p": 9}, 9)
