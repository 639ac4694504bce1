"""S3: which profile a project has, who may say so, and how soon submits follow."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import BadRequest, Forbidden, Unavailable
from millrace.sync.adapters.memory import MemoryProfiles
from millrace.sync.application.choose_profile import FRESH_MS, MOST_KEPT, ChooseProfile
from millrace.sync.application.set_profile import SetProfile

OPERATOR = Identity("ops", "acme", frozenset({"demo", "old"}), ("*",), frozenset({"operator"}), "acme")
DEPLOYED = {"acme/old": "compatibility", "other/demo": "canonical"}


@dataclass
class Time:
    now: int = 10**12

    def __call__(self) -> int:
        return self.now


@dataclass
class Counting(MemoryProfiles):
    reads: list[str] = field(default_factory=list)

    def get(self, tenant: str, project: str) -> str | None:
        self.reads.append(project)
        return MemoryProfiles.get(self, tenant, project)


def test_what_an_operator_sets_goes_before_the_deployment_and_null_takes_it_back() -> None:
    door = SetProfile(MemoryProfiles(), DEPLOYED)
    assert door.read(OPERATOR, "demo") == {"project": "demo", "profile": "open", "set_by": "default"}
    assert door.read(OPERATOR, "old") == {"project": "old", "profile": "compatibility", "set_by": "deployment"}
    assert door(OPERATOR, "old", {"profile": "open"}) == {"project": "old", "profile": "open", "set_by": "operator"}
    assert door.read(OPERATOR, "old")["profile"] == "open"
    assert door(OPERATOR, "old", {"profile": None})["set_by"] == "deployment"


def test_submits_follow_within_seconds_and_do_not_read_each_time() -> None:
    profiles, clock = Counting(), Time()
    choose = ChooseProfile(profiles, DEPLOYED, clock)
    assert [choose("acme", "demo") for _ in range(9)] == ["open"] * 9
    assert choose("acme", "old") == "compatibility"
    assert profiles.reads == ["demo", "old"]
    SetProfile(profiles, DEPLOYED)(OPERATOR, "demo", {"profile": "canonical"})
    clock.now += FRESH_MS - 1
    assert choose("acme", "demo") == "open"
    clock.now += 1
    assert choose("acme", "demo") == "canonical"
    assert choose("other", "demo") == "canonical"


def test_a_clock_that_was_set_back_keeps_no_profile_for_long() -> None:
    profiles, clock = MemoryProfiles(), Time()
    choose = ChooseProfile(profiles, {}, clock)
    choose("acme", "demo")
    profiles.put("acme", "demo", "canonical")
    clock.now -= 10 * FRESH_MS
    assert choose("acme", "demo") == "canonical"


def test_a_function_remembers_so_many_projects_and_no_more() -> None:
    choose = ChooseProfile(MemoryProfiles(), {}, Time())
    for number in range(MOST_KEPT + 5):
        choose("acme", str(number))
    assert len(choose.kept) == MOST_KEPT


def test_a_profile_of_a_newer_release_lets_nothing_in_unchecked() -> None:
    profiles = MemoryProfiles()
    profiles.put("acme", "demo", "sealed")
    with pytest.raises(Unavailable):
        ChooseProfile(profiles, {}, Time())("acme", "demo")


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (None, "body"),
        ([], "body"),
        ({}, "body"),
        ({"profile": "open", "more": 1}, "body"),
        ({"profile": "Open"}, "profile"),
        ({"profile": ""}, "profile"),
        ({"profile": 1}, "profile"),
        ({"profile": ["open"]}, "profile"),
    ],
)
def test_a_body_that_sets_no_profile_is_refused_by_its_field(body: Any, where: str) -> None:
    profiles = MemoryProfiles()
    with pytest.raises(BadRequest) as refused:
        SetProfile(profiles, {})(OPERATOR, "demo", body)
    assert refused.value.details["field"] == where
    assert profiles.rows == {}


@pytest.mark.parametrize(
    "who",
    [
        replace(OPERATOR, roles=frozenset({"producer", "consumer"})),
        replace(OPERATOR, projects=frozenset({"other"})),
        replace(OPERATOR, partitions=("orders", "session:*")),
    ],
    ids=["no operator", "another project", "not the whole project"],
)
def test_who_may_not_set_a_profile_sets_none(who: Identity) -> None:
    profiles = MemoryProfiles()
    with pytest.raises(Forbidden):
        SetProfile(profiles, {})(who, "demo", {"profile": "canonical"})
    assert profiles.rows == {}


def test_the_list_has_what_the_token_names_and_what_the_deployment_says_first() -> None:
    profiles = MemoryProfiles()
    for project in ("a", "demo", "hidden"):
        profiles.put("acme", project, "canonical")
    profiles.put("other", "demo", "open")
    door = SetProfile(profiles, DEPLOYED)
    first = door.list(OPERATOR, "", 2)
    assert first == {
        "profiles": [{"project": "demo", "profile": "canonical", "set_by": "operator"}],
        "deployment": {"old": "compatibility"},
        "next_after": "demo",
    }
    assert door.list(OPERATOR, "demo", 2) == {"profiles": [], "deployment": {}, "next_after": None}
