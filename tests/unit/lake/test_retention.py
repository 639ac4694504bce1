"""C8: retention requests are read strictly; the hub and the jobs share one rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millrace.lake.domain.retention import Release, RetentionRequest
from millrace.ledger.domain.errors import BadRequest

LEDGER, OTHER = "sync#acme#demo", "realtime#acme#s1"


def test_a_request_is_read_from_json_and_written_as_it_is_read() -> None:
    content = {
        "ledgers": {LEDGER: {"limit": 9, "partitions": {"p": 3}}, "realtime#acme#s1": {"limit": 2, "watermark": 2}}
    }
    request = RetentionRequest.parse(json.dumps(content).encode())
    assert request == RetentionRequest({LEDGER: Release(9, 0, {"p": 3}), "realtime#acme#s1": Release(2, 2)})
    assert RetentionRequest.parse(request.to_json()) == request


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ([], "request"),
        ({}, "request.ledgers"),
        ({"ledgers": {}, "policies": []}, "request.policies"),
        ({"ledgers": []}, "ledgers"),
        ({"ledgers": {"l": 5}}, "ledgers.l"),
        ({"ledgers": {"l": {"watermark": 5}}}, "ledgers.l.limit"),
        ({"ledgers": {"l": {"limit": -1}}}, "ledgers.l.limit"),
        ({"ledgers": {"l": {"limit": True}}}, "ledgers.l.limit"),
        ({"ledgers": {"l": {"limit": 1, "watermark": "5"}}}, "ledgers.l.watermark"),
        ({"ledgers": {"l": {"limit": 1, "partitions": ["p"]}}}, "ledgers.l.partitions"),
        ({"ledgers": {"l": {"limit": 1, "partitions": {"p": 1.5}}}}, "ledgers.l.partitions.p"),
        ({"ledgers": {"l": {"limit": 1, "max_events": 5}}}, "ledgers.l.max_events"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_with_the_field(content: Any, field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        RetentionRequest.parse(json.dumps(content).encode())
    assert refused.value.details["field"] == field


def test_a_request_that_is_not_json_is_refused() -> None:
    with pytest.raises(BadRequest, match="not JSON"):
        RetentionRequest.parse(b"{")


@pytest.mark.parametrize(
    ("partitions", "last"), [([], 3), (["other"], 3), (["p"], 8), (["q"], 2), (["p", "q"], 2), (["p", "other"], 3)]
)
def test_an_event_goes_when_every_partition_it_names_and_every_reader_has_passed_it(
    partitions: list[str], last: int
) -> None:
    """S13, C8: one without partitions is in the one that the ledger is."""
    release = Release(8, 3, {"p": 9, "q": 2})
    assert [position for position in range(1, 11) if release.allows(position, partitions)] == list(range(1, last + 1))


def test_without_a_watermark_nothing_goes() -> None:
    """C8: no policy means never."""
    assert not Release(8).allows(1, [])
