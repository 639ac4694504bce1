"""The repository's Markdown pages: their text, links, headings and the paths they name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
BUILDS = ("build", "dist")
ANCHOR = re.compile(r'<a id="([^"]+)"')


@cache
def pages() -> list[Path]:
    """Every Markdown file, but those of environments and builds."""
    folders = [path for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "." and path.name not in BUILDS]
    return sorted([*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))])


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return CODE_BLOCK.sub("", page.read_text())


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Path and anchor of every link that stays in the repository."""
    for link in LINK.findall(CODE_SPAN.sub("", prose(page))):
        if ":" not in link:
            path, _, anchor = link.partition("#")
            yield path, anchor


@cache
def anchors(page: Path) -> frozenset[str]:
    """What a link to this page may end in, as GitHub makes anchors from headings."""
    text = prose(page)
    return frozenset([*map(slug, HEADING.findall(text)), *ANCHOR.findall(text)])


def slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")


def section(page: Path, heading: str) -> str:
    """The text below a heading, up to the next one of the same or a higher level."""
    text = page.read_text()
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    assert found, f"{page.name} has no heading {heading!r}"
    rest = text[found.end() :]
    following = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


def tables(text: str) -> list[list[list[str]]]:
    """Every table's rows, as cells, without its heading."""
    blocks = re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE)
    return [[_cells(line) for line in block.splitlines()[2:]] for block in blocks]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def spans(text: str) -> list[str]:
    """What stands in backticks."""
    return [span.strip("`") for span in CODE_SPAN.findall(text)]
