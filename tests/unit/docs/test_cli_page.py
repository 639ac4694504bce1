"""docs/cli.md is what the command's own help says."""

from __future__ import annotations

from infra import cli_docs
from tests.support.commands import EXAMPLES, commands


def test_the_page_of_the_command_line_is_not_stale() -> None:
    assert {path: path.read_text() for path in cli_docs.files()} == cli_docs.files(), "run `make generated`"


def test_the_page_has_every_command_and_every_example() -> None:
    page = cli_docs.PAGE.read_text()
    for name, _ in commands():
        assert f"\n## millrace {name}\n" in page
    assert page.count("\nmillrace ") == len(EXAMPLES)
