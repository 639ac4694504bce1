"""docs/contracts.md lists every sentence of the five documents with its rules and with tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.docs.pages import ROOT
from tests.unit.docs.sentences import (
    FOLDER,
    RULES_PAGE,
    documents,
    exists,
    named_tests,
    node_names,
    sentences,
    stated_rules,
)

PAGES = sorted(FOLDER.glob("*.md"))
NAMES = [page.name for page in PAGES]


def test_the_five_documents_have_a_page_each_and_the_contracts_list_them() -> None:
    assert NAMES == [
        "adr-004-event-envelope.md",
        "durability.md",
        "event-sync-delivery.md",
        "realtime-events.md",
        "sdk-events-and-streams.md",
    ]
    assert sorted(documents()) == PAGES


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_sentence_is_missing(page: Path) -> None:
    """The numbers run from 1 without a hole up to the count that docs/contracts.md states."""
    assert [one.number for one in sentences(page)] == list(range(1, documents()[page] + 1))


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_sentence_names_rules_that_are_stated(page: Path) -> None:
    known = stated_rules()
    assert {"S1", "R1", "T1", "M1", "P1", "D1", "C1"} <= known
    wrong = [f"{one.number}: {one.rules}" for one in sentences(page) if not one.rules or set(one.rules) - known]
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_sentence_names_tests_and_all_of_them_exist(page: Path) -> None:
    unproved = [one.number for one in sentences(page) if not one.tests]
    assert not unproved, f"without a test: {unproved}"
    missing = [f"{one.number}: {test}" for one in sentences(page) for test in one.tests if not exists(test)]
    assert not missing


@pytest.mark.parametrize("page", [RULES_PAGE, *PAGES], ids=["contracts.md", *NAMES])
def test_a_test_that_a_page_names_anywhere_exists(page: Path) -> None:
    """Also one that is named where this reader expects none, such as in the text of a rule."""
    assert not [test for test in named_tests(page.read_text()) if not exists(test)]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_test_is_named_beside_a_sentence(page: Path) -> None:
    """What is not below a sentence, on a line of its own, would be counted for none."""
    assert named_tests(page.read_text()) == [test for one in sentences(page) for test in one.tests]


def test_a_test_is_found_in_its_file_and_nowhere_else() -> None:
    here = str(Path(__file__).relative_to(ROOT))
    assert exists(f"{here}::test_no_sentence_is_missing")
    assert not exists(f"{here}::test_no_sentence_was_ever_missing")
    assert not exists(f"{here}::test_no_sentence")
    assert not exists("tests/unit/docs/test_nowhere.py::test_no_sentence_is_missing")
    assert not exists(here)
    assert "TestLegacy::test_an_old_name_alone_is_renamed" in node_names("tests/unit/realtime/test_models.py")


def test_a_sentence_is_read_with_its_rules_and_tests(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "1. One\n   more line. [S1](../contracts.md#s1), [S2](../contracts.md#s3)\n"
        "   - `a.py::test_a`\n   - `b.py::test_b`\n\n   Chosen: this.\n2. Two.\n"
    )
    one, two = sentences(page)
    assert (one.number, one.rules, one.tests) == (1, ["S1"], ["a.py::test_a", "b.py::test_b"])
    assert re.match("One more line", one.text)
    assert (two.number, two.rules, two.tests) == (2, [], [])
