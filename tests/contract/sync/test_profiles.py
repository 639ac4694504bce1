"""Profiles of projects: one contract for memory, moto and the embedded stack."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from moto import mock_aws

from millrace.sync.adapters.memory import MemoryProfiles
from millrace.sync.adapters.profiles import DynamoProfiles
from millrace.sync.ports import Profiles
from tests.support.aws_tables import client_for, client_of, create_tables


@pytest.fixture(params=["memory", "moto", "embedded", "lean"])
def profiles(request: pytest.FixtureRequest) -> Iterator[Profiles]:
    if request.param == "memory":
        yield MemoryProfiles()
    elif request.param == "moto":
        with mock_aws():
            tables = create_tables(client_for(None))
            yield DynamoProfiles(tables.client, tables.state)
    else:
        tables = create_tables(client_of(request))
        yield DynamoProfiles(tables.client, tables.state)


def test_a_profile_is_kept_replaced_and_taken_away(profiles: Profiles) -> None:
    """S3"""
    tenant = uuid.uuid4().hex
    assert profiles.get(tenant, "demo") is None
    profiles.put(tenant, "demo", None)
    assert profiles.get(tenant, "demo") is None
    profiles.put(tenant, "demo", "canonical")
    profiles.put(tenant, "demo", "compatibility")
    assert profiles.get(tenant, "demo") == "compatibility"
    profiles.put(tenant, "demo", None)
    assert profiles.get(tenant, "demo") is None
    assert profiles.page(tenant, "", 10).profiles == {}


def test_tenants_and_projects_with_odd_names_are_apart(profiles: Profiles) -> None:
    mark = uuid.uuid4().hex
    profiles.put(f"{mark}a#b", "c", "canonical")
    profiles.put(f"{mark}a", "b#c", "compatibility")
    assert profiles.get(f"{mark}a#b", "c") == "canonical"
    assert (profiles.get(f"{mark}a", "b"), profiles.get(f"{mark}a", "c")) == (None, None)
    assert profiles.page(f"{mark}a", "", 10).profiles == {"b#c": "compatibility"}


def test_pages_go_to_the_end_and_repeat_nothing(profiles: Profiles) -> None:
    tenant = uuid.uuid4().hex
    for number in range(7):
        profiles.put(tenant, f"p{number}", "canonical")
    profiles.put(tenant, "p3", None)
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = profiles.page(tenant, after, 2)
        assert len(page.profiles) <= 2
        found += page.profiles
        after = page.after
    assert found == ["p0", "p1", "p2", "p4", "p5", "p6"]
