"""The alarms and the dashboard are made from a table, and tell a person what is wrong and what to do."""

from __future__ import annotations

import pytest

from infra import generated
from infra.monitoring.alarm import Alarm
from infra.monitoring.build import STACK, alarms, stack
from infra.monitoring.hub import HubNames, read_hub
from infra.monitoring.table import ERRORS, FUNCTIONS, READ_THROTTLES, THROTTLES, WRITE_THROTTLES
from tests.support.translated import functions, named

HUB = read_hub()
ALARMS = alarms(HUB)
LONGEST_DESCRIPTION = 1024


def test_the_committed_stack_is_not_stale() -> None:
    assert generated.files()[STACK] == STACK.read_text(), "run: make generated"


def test_the_committed_stack_says_that_it_is_generated() -> None:
    first, *_ = STACK.read_text().splitlines()
    assert "make generated" in first


@pytest.mark.parametrize("function", sorted(functions()))
def test_a_function_has_the_alarms_that_every_function_has(function: str) -> None:
    name = named(functions()[function]["Properties"]["FunctionName"]).removeprefix("hub-")
    assert {ERRORS, THROTTLES} <= {alarm.kind for alarm in ALARMS if alarm.thing.name == name}


def test_a_new_function_and_a_new_table_need_no_row() -> None:
    grown = HubNames([*HUB.functions, "new"], [*HUB.tables, "fresh"])
    added = [alarm for alarm in alarms(grown) if alarm not in ALARMS]
    assert [(alarm.thing.name, alarm.kind) for alarm in added] == [
        ("new", ERRORS),
        ("new", THROTTLES),
        ("fresh", READ_THROTTLES),
        ("fresh", WRITE_THROTTLES),
    ]
    shown = stack(grown)["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    assert '"${Hub}-new"' in shown
    assert '"${Hub}-fresh"' in shown


def test_a_row_about_a_function_is_about_one_that_exists() -> None:
    named_in_rows = {alarm.thing.name for alarm in FUNCTIONS if alarm.thing.namespace == "AWS/Lambda"}
    assert named_in_rows <= set(HUB.functions)


def test_no_two_alarms_have_the_same_name_or_id() -> None:
    assert len({alarm.name for alarm in ALARMS}) == len(ALARMS)
    assert len({alarm.logical_id for alarm in ALARMS}) == len(ALARMS)


@pytest.mark.parametrize("alarm", ALARMS, ids=lambda alarm: alarm.name)
def test_an_alarm_says_in_one_sentence_what_is_wrong_and_then_what_to_do(alarm: Alarm) -> None:
    assert alarm.wrong[0].isupper()
    assert alarm.wrong.endswith(".")
    assert ". " not in alarm.wrong
    assert alarm.do[0].isupper()
    assert alarm.do.endswith(".")
    assert len(alarm.resource()["Properties"]["AlarmDescription"]) <= LONGEST_DESCRIPTION
