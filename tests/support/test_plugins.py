"""What the suite adds to pytest: a leak fails the test that made it, and a failure says how to run it again."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scheduling import APART, TOGETHER, WHILE_EMPTY, ByFile, _place

ROOT = Path(__file__).parents[2]
WHERE = pytest.mark.parametrize("where", [[], ["-n", "1"]], ids=["this process", "another process"])

LEAK = """
import asyncio, socket

async def leave_a_socket():
    mine, self.theirs = socket.socketpair()
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=mine)
    cycle = [transport]
    cycle.append(cycle)

class self: pass

def test_that_leaks():
    asyncio.run(leave_a_socket())
    self.theirs.close()

def test_that_comes_after():
    pass
"""

FAILURES = """
import pytest

def test_fine():
    pass

@pytest.mark.parametrize("seed", ["it's 7"])
def test_bad(seed):
    assert not seed

@pytest.fixture
def broken():
    raise OSError

def test_worse(broken):
    pass
"""


def pytest_run(folder: Path, test: str, *arguments: str, **settings: str) -> list[str]:
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (folder / "test_it.py").write_text(test)
    plugins = ["-p", "no:cacheprovider", "-p", "xdist", "-p", "tests.support.leaks", "-p", "tests.support.run_again"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MILLRACE_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-q", *plugins, *arguments]
    environment = kept | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | settings
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    return run.stdout.splitlines()


def again(lines: list[str]) -> list[list[str]]:
    return [shlex.split(line.partition(": ")[2]) for line in lines if line.startswith("Run just this one: ")]


@WHERE
def test_an_open_socket_fails_the_test_that_left_it(where: list[str], tmp_path: Path) -> None:
    lines = pytest_run(tmp_path, LEAK, *where)
    assert any("ResourceWarning: unclosed transport" in line for line in lines)
    assert [line.split(" - ")[0] for line in lines if line.startswith(("ERROR ", "FAILED "))] == [
        "ERROR test_it.py::test_that_leaks"
    ]
    assert "2 passed, 1 error" in lines[-2]


@WHERE
def test_the_first_failure_says_how_to_run_just_that_test(where: list[str], tmp_path: Path) -> None:
    lines = pytest_run(tmp_path, FAILURES, *where, "-x", MILLRACE_SEEDS="1,7", MILLRACE_TOKEN="secret")
    [[seeds, program, nodeid]] = again(lines[-1:])
    assert seeds == "MILLRACE_SEEDS=1,7"
    assert (tmp_path / program).resolve() == Path(sys.prefix, "bin", "pytest").resolve()
    assert nodeid == "test_it.py::test_bad[it's 7]"


def test_an_error_outside_the_test_itself_is_named_too(tmp_path: Path) -> None:
    [[_, nodeid]] = again(pytest_run(tmp_path, FAILURES, "-k", "worse"))
    assert nodeid == "test_it.py::test_worse"
    [[_, file]] = again(pytest_run(tmp_path, "import nothing_of_this_name", "-n", "1"))
    assert file == "test_it.py"


def test_nothing_is_said_when_all_is_well(tmp_path: Path) -> None:
    assert again(pytest_run(tmp_path, FAILURES, "-k", "fine")) == []


@pytest.mark.parametrize("alone", APART)
def test_what_is_run_apart_from_its_folder_is_there(alone: str) -> None:
    file, _, test = alone.partition("::")
    assert f"def {test}" in (ROOT / file).read_text()
    [folder] = [folder for folder in TOGETHER if file.startswith(folder)]
    scheduling = ByFile.__new__(ByFile)
    assert scheduling._split_scope(f"{alone}::test_x") == alone
    assert scheduling._split_scope(f"{folder}test_other.py::test_x") == folder


@pytest.mark.parametrize("early", WHILE_EMPTY)
def test_what_walks_through_a_whole_hub_is_there_and_comes_before_those_that_fill_it(early: str) -> None:
    assert (ROOT / early).is_file()
    assert _place(f"{early}::test_x") < _place("tests/e2e/test_busy.py::test_x") < _place("tests/jobs/test_x.py")
