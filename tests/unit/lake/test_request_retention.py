"""C8: what the hub knows, handed to the job that prunes the tables and the archive."""

from __future__ import annotations

import pytest

from millrace.lake.adapters.memory.objects import MemoryObjects
from millrace.lake.adapters.memory.policies import MemoryPolicies
from millrace.lake.application.request_retention import put_request, request_of
from millrace.lake.domain.retention import Release, RetentionRequest
from millrace.ledger.domain.errors import Unavailable
from tests.unit.lake.archiving import Hub
from tests.unit.lake.retaining import DEMO, caught_up, set_rule, use_case


def planned() -> RetentionRequest:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9, partitions=(("a",), ("a", "b"), ("c",)))
    caught_up(hub)
    hub.state.cursors[DEMO]["fan_out"] = 7
    set_rule(policies, advance_to=6)
    set_rule(policies, partition="b", advance_to=2, max_age_days=1)
    return request_of(use_case(hub, policies)(dry_run=True).plans)


def test_a_request_tells_watermarks_by_partition_and_how_far_readers_are() -> None:
    assert planned() == RetentionRequest({DEMO: Release(7, 6, {"b": 2})})


def test_a_request_is_read_back_as_it_was_put_and_the_next_one_takes_its_place() -> None:
    objects, request = MemoryObjects(), planned()
    put_request(objects, "lake/retention.json", request)
    assert RetentionRequest.parse(objects.stored["lake/retention.json"]) == request
    put_request(objects, "lake/retention.json", RetentionRequest())
    assert RetentionRequest.parse(objects.stored["lake/retention.json"]) == RetentionRequest()


class Overtaken(MemoryObjects):
    """Another run swaps the object right before us."""

    def swap(self, name: str, data: bytes, tag: str) -> bool:
        self.stored[name] = b"another's"
        return super().swap(name, data, tag)


def test_two_runs_that_begin_at_once_do_not_mix() -> None:
    objects = Overtaken()
    objects.put("r", b"before")
    with pytest.raises(Unavailable):
        put_request(objects, "r", planned())
    assert objects.stored["r"] == b"another's"
