"""docs/operations.md has every alarm, in the order of a bad night, and names what exists."""

from __future__ import annotations

import re

import pytest

from infra.monitoring.build import alarms
from infra.monitoring.hub import read_hub
from infra.runbook_docs import NIGHT, PAGE, files, in_part
from millrace.ledger.domain.metrics import Metric
from tests.support.translated import of_type, template
from tests.unit.docs.pages import section, spans, tables

ALARMS = alarms(read_hub())
PARTS = {
    "lost": "1. Is something being lost?",
    "refused": "2. Are callers refused?",
    "late": "3. Are events late?",
    "repair": "4. Does what repairs still run?",
    "cause": "5. Why?",
}


def test_the_tables_of_the_page_are_not_stale() -> None:
    assert files()[PAGE] == PAGE.read_text(), "run: make generated"


def test_every_alarm_is_in_one_part_of_the_night() -> None:
    found = [alarm.name for part in NIGHT for alarm in in_part(part)]
    assert sorted(found) == sorted(alarm.name for alarm in ALARMS)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_has_a_row_for_each_of_its_alarms_with_what_is_wrong_and_what_to_do(part: str) -> None:
    rows = [row for table in tables(section(PAGE, PARTS[part])) for row in table]
    for alarm in in_part(part):
        alike = re.compile(rf"`NAME-{alarm.kind.name}` for .*\b{alarm.thing.name}\b")
        (row,) = [row for row in rows if row[0].startswith(f"`{alarm.name}`") or alike.match(row[0])]
        assert row[1].replace("NAME", alarm.thing.name) == alarm.wrong
        assert row[2].replace("NAME", alarm.thing.name) == alarm.do
        assert ("`Alarms=all`" in row[0]) == bool(alarm.shown_by)


def test_the_parts_are_in_the_order_of_the_night() -> None:
    text = PAGE.read_text()
    places = [text.index(f"### {heading}") for heading in PARTS.values()]
    assert list(PARTS) == list(NIGHT)
    assert places == sorted(places)


def test_every_secret_of_the_template_has_its_row_in_the_rotation() -> None:
    ((*rows,),) = tables(section(PAGE, "Key rotation"))
    assert {row[0] for row in rows} == {f"`{name}Arn`" for name in of_type("AWS::SecretsManager::Secret")}


def test_every_table_is_named_in_the_restore() -> None:
    assert set(read_hub().tables) <= set(spans(section(PAGE, "Restore")))


def test_what_the_page_names_exists() -> None:
    """Metrics of the hub, parameters and outputs of the template are written in capitals and small letters."""
    named = {span.partition("=")[0] for span in spans(PAGE.read_text())}
    words = {name for name in named if re.fullmatch(r"(?:[A-Z][a-z]+){2,}", name)}
    known = {*Metric, *template()["Parameters"], *template()["Outputs"], "MaximumConcurrency"}
    assert words
    assert not words - known
