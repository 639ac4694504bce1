"""CONTRIBUTING.md: the files that its recipes list exist, and a function takes no more of them than promised."""

from __future__ import annotations

import re

import pytest

from tests.unit.docs.pages import ROOT, section, spans, tables

PAGE = ROOT / "CONTRIBUTING.md"
PACKAGE = ROOT / "layers/common/python/millrace"
RECIPES = re.findall(r"^### (.+)$", section(PAGE, "Recipes"), re.MULTILINE)
MOST_FILES = 8


def by_hand(recipe: str) -> list[str]:
    (table,) = tables(section(PAGE, recipe))
    return [spans(row[0])[0] for row in table]


def paths(text: str) -> list[str]:
    return [span for span in spans(text) if re.fullmatch(r"[\w.<>*-]+(/[\w.<>*-]+)+", span)]


def exists(path: str) -> bool:
    pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
    return any(any(base.glob(pattern)) for base in (ROOT, PACKAGE))


def test_there_is_a_recipe_for_each_common_change() -> None:
    assert RECIPES == [
        "A header on webhooks",
        "A realtime event type",
        "The largest sync page",
        "A column in the events table",
        "A field in the sync answer",
        "A metric when a commit loses a race",
        "A receiver type",
        "A function",
    ]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_lists_at_most_eight_files_and_all_of_them_exist(recipe: str) -> None:
    files = by_hand(recipe)
    assert 1 <= len(files) <= MOST_FILES
    assert not [path for path in files if not exists(path)]


def test_every_path_that_the_page_names_exists() -> None:
    assert not [path for path in paths(PAGE.read_text()) if not exists(path)]
