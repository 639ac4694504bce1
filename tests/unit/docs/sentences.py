"""The pages of docs/contracts/: the sentences of the five documents, each with its rules and its tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.unit.docs.pages import ROOT, section, spans, tables

RULES_PAGE = ROOT / "docs/contracts.md"
FOLDER = ROOT / "docs/contracts"
NUMBERED = re.compile(r"^(\d+)\. (.+)$")
PROOF = re.compile(r"^ +- `([^`]+)`$")
RULE = re.compile(r"\[([A-Z]\d+)\]\(\.\./contracts\.md#([a-z]\d+)\)")


@dataclass
class Sentence:
    """One numbered line of a page. `tests` are node ids as pytest takes them."""

    number: int
    text: str
    rules: list[str]
    tests: list[str] = field(default_factory=list)


def documents() -> dict[Path, int]:
    """The page of each document with the number of its sentences, as docs/contracts.md lists them."""
    (table,) = tables(section(RULES_PAGE, "The documents, sentence by sentence"))
    found = {}
    for document, count, _ in table:
        link = re.search(r"\]\(([^)]+)\)", document)
        assert link, f"{document} does not link to its page"
        found[RULES_PAGE.parent / link[1]] = int(count)
    return found


def sentences(page: Path) -> list[Sentence]:
    """A sentence may go over several lines; its tests stand below it, one a line."""
    found: list[Sentence] = []
    joined = re.sub(r"\n {3,4}(?=[^ -])", " ", page.read_text())
    for line in joined.splitlines():
        if numbered := NUMBERED.match(line):
            found.append(Sentence(int(numbered[1]), numbered[2], _rules(numbered[2])))
        elif proof := PROOF.match(line):
            found[-1].tests.append(proof[1])
    return found


def _rules(text: str) -> list[str]:
    """The rules of a sentence; a link whose name and anchor differ counts as neither."""
    return [name for name, anchor in RULE.findall(text) if name.lower() == anchor]


def stated_rules() -> set[str]:
    """Every rule that docs/contracts.md states: `**S1** <a id="s1"></a>`."""
    return set(re.findall(r'\*\*([A-Z]\d+)\*\* <a id="[a-z]\d+"></a>', RULES_PAGE.read_text()))


@cache
def node_names(path: str) -> frozenset[str]:
    """The tests of a file by the rest of their node id, read from its text: nothing is imported."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    return frozenset(_tests(ast.parse(file.read_text()).body))


def _tests(body: list[ast.stmt], within: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield within + node.name
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _tests(node.body, f"{within}{node.name}::")


def exists(test: str) -> bool:
    path, _, name = test.partition("::")
    return name in node_names(path)


def named_tests(text: str) -> list[str]:
    """The node ids that stand in a text."""
    return [span for span in spans(text) if "::" in span]
