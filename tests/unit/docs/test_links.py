"""The documentation hangs together: the index lists every page, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.docs.pages import ROOT, anchors, links, pages, slug, spans

INDEX = ROOT / "docs" / "README.md"
BASES = (ROOT, ROOT / "layers/common/python/millrace", ROOT / "clients/python")
"""Where the paths on a page begin."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_index_lists_every_page_of_the_documentation() -> None:
    listed = {(INDEX.parent / path).resolve() for path, _ in links(INDEX)}
    documents = {*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.yaml")} - {INDEX}
    assert not sorted(name(page) for page in documents - listed)


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_link_leads_to_a_file_and_every_anchor_to_a_heading(page: Path) -> None:
    broken = []
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}" if anchor else path)
    assert not broken


@pytest.mark.parametrize("page", [page for page in pages() if "adr" not in page.parts], ids=name)
def test_every_python_file_that_a_page_names_exists(page: Path) -> None:
    """A decision keeps the paths of its day; every other page is held to the code."""
    named = {span for span in spans(page.read_text()) if re.fullmatch(r"[\w./-]+/[\w-]+\.py", span)}
    assert not [path for path in named if not any((base / path).is_file() for base in (*BASES, page.parent))]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("S — sync", "s--sync"),
        ("Errors over HTTP", "errors-over-http"),
        ("`POST /v1` and more", "post-v1-and-more"),
        ("What a [link](x.md) says", "what-a-link-says"),
    ],
)
def test_anchors_are_made_as_github_makes_them(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor
