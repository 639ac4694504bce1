"""Documents and code: no generated file is stale, and the limits that are stated are those enforced (S12)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra import generated, limits
from infra.limits import DEFINITIONS, DOCUMENTS, SIZES, TEXTS, VALUES

GENERATED = generated.files()


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_a_generated_file_is_not_stale(path: Path) -> None:
    assert GENERATED[path] == path.read_text(), "run: make generated"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_s12_every_limit_a_document_states_is_the_one_enforced(path: Path) -> None:
    wrong = [
        f"{path.name}:{one.line} says {one.text} for the limit {one.name}, the code {one.expected}: make generated"
        for one in limits.mentions(path.read_text())
        if one.text != one.expected
    ]
    assert wrong == []


def test_s12_every_limit_is_defined_once_in_the_contracts() -> None:
    defined = re.findall(r'<a id="limit-([a-z-]+)"></a>', DEFINITIONS.read_text())
    assert sorted(defined) == sorted(TEXTS)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_s12_a_size_that_is_a_limit_links_to_its_definition(path: Path) -> None:
    sizes = "|".join(sorted({limits.size(number) for number in SIZES.values()}))
    plain = limits.current(path.read_text())
    for pattern in limits.PATTERNS:
        plain = pattern.sub("", plain)
    unlinked = [
        f"{path.name}: {found.group()} is a limit; write [{found.group()}](contracts.md#limit-…)"
        for found in re.finditer(rf"(?<![0-9])(?:{sizes})\b", plain)
    ]
    assert unlinked == []


@pytest.mark.parametrize(
    ("stale", "line", "expected"),
    [
        ('\n| <a id="limit-batch"></a>events | 7 |', 2, TEXTS["batch"]),
        ("at most [7 MiB](contracts.md#limit-http-body)", 1, TEXTS["http-body"]),
        ("a:\n  maxItems: 7 # limit: partitions\n", 2, str(VALUES["partitions"])),
        ("max_event_bytes: 5 # limit: event", 1, str(VALUES["event"])),
    ],
)
def test_a_stale_limit_is_named_by_its_line_and_written_anew(stale: str, line: int, expected: str) -> None:
    (found,) = limits.mentions(stale)
    assert (found.line, found.expected) == (line, expected)
    assert [one.text for one in limits.mentions(limits.current(stale))] == [expected]
