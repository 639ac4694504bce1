"""The public names of the client: all of them can be imported, lazily, and the pages use no others."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import millrace_client

ROOT = Path(__file__).parents[3]
PAGES = ("clients/python/README.md", "docs/websocket.md")


@pytest.mark.parametrize("name", millrace_client.__all__)
def test_a_public_name_is_the_thing_of_its_home(name: str) -> None:
    home, attribute = millrace_client._PLACES[name]
    assert getattr(millrace_client, name) is getattr(sys.modules[home], attribute)


def test_the_names_that_type_checkers_see_are_those_that_programs_get() -> None:
    tree = ast.parse(Path(millrace_client.__file__).read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    seen = {one.asname or one.name: (node.module, one.name) for node in imports for one in node.names}
    assert seen == millrace_client._PLACES
    assert set(seen) == set(millrace_client.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = millrace_client.Nothing  # type: ignore[attr-defined]


def test_importing_the_package_imports_nothing_else() -> None:
    code = (
        "import sys, millrace_client; print([name for name in ('httpx', 'websockets', 'jwt') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_use_public_names_only(page: str) -> None:
    examples = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    nodes = [node for example in examples for node in ast.walk(ast.parse(example))]
    used = [node for node in nodes if isinstance(node, ast.ImportFrom) and str(node.module).startswith("millrace")]
    assert used
    assert {node.module for node in used} == {"millrace_client"}
    assert {one.name for node in used for one in node.names} <= set(millrace_client.__all__)
