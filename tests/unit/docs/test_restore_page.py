"""The page about restoring names all that a rebuild finds and cannot know, and what it names is there."""

from __future__ import annotations

import re
from typing import Any

from millrace.operators.domain.rebuilt import MEANINGS, MUST_BE_SEEN_TO, UNKNOWN
from tests.support.translated import named, of_type
from tests.unit.docs.pages import ROOT, section, tables

PAGE = ROOT / "docs" / "restore.md"


def test_every_finding_is_on_the_page_with_what_it_asks_for() -> None:
    rows = {row[0].strip("`"): row[1] for row in tables(section(PAGE, "The rebuild"))[0]}
    assert rows == {name: "yes" if name in MUST_BE_SEEN_TO else "no" for name in MEANINGS}


def test_all_that_cannot_be_known_is_on_the_page() -> None:
    rows = [row[0] for row in tables(section(PAGE, "What cannot be known"))[0]]
    assert rows == [one.what for one in UNKNOWN]


def test_the_commands_name_tables_and_functions_of_the_template() -> None:
    text = PAGE.read_text()
    functions = {named(one["Properties"]["FunctionName"]) for one in of_type("AWS::Lambda::Function").values()}
    assert set(re.findall(r"--function-name (\S+)", text)) <= functions
    stated = {
        named(one["Properties"]["TableName"]): one["Properties"] for one in of_type("AWS::DynamoDB::Table").values()
    }
    assert set(re.findall(r"--table-name (hub-\w+)", text)) <= stated.keys()
    for table in ("hub-state", "hub-index"):
        assert _keys(stated[table]) == [("p", "HASH", "S"), ("s", "RANGE", "S")]
        assert "StreamSpecification" not in stated[table], "the page says that it needs none"
    view = stated["hub-log"]["StreamSpecification"]["StreamViewType"]
    assert f"--table-name hub2-log --stream-specification StreamEnabled=true,StreamViewType={view}" in text
    streaming = [name for name, one in stated.items() if "StreamSpecification" in one]
    assert streaming == ["hub-log"], "the page enables no other"


def _keys(stated: Any) -> list[tuple[str, str, str]]:
    types = {one["AttributeName"]: one["AttributeType"] for one in stated["AttributeDefinitions"]}
    return [(one["AttributeName"], one["KeyType"], types[one["AttributeName"]]) for one in stated["KeySchema"]]
