"""What contributors are told to run exists: make targets, hooks, and what the workflow calls."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from infra import cloudformation
from tests.unit.docs.pages import ROOT, pages

TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
WORKFLOW = ROOT / ".github/workflows/ci.yml"


def hooks() -> list[dict[str, Any]]:
    (repository,) = cloudformation.parse((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    listed: list[dict[str, Any]] = repository["hooks"]
    return listed


def steps() -> list[dict[str, Any]]:
    (job,) = cloudformation.parse(WORKFLOW.read_text())["jobs"].values()
    listed: list[dict[str, Any]] = job["steps"]
    return listed


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE))
    assert not named - TARGETS


def test_a_hook_runs_a_program_of_the_environment_and_downloads_nothing() -> None:
    for hook in hooks():
        assert hook["language"] == "system"
        program = hook["entry"].split()[0]
        assert program.startswith(".venv/bin/")
        assert os.access(ROOT / program, os.X_OK), program


def test_the_hooks_are_the_checks_of_make_lint() -> None:
    recipe = (ROOT / "Makefile").read_text().split("\nlint:")[1].split("\n\n")[0]
    linted = {Path(program).name for program in re.findall(r"\$\(BIN\)/([\w-]+)", recipe)}
    assert {Path(hook["entry"].split()[0]).name for hook in hooks()} == linted
    assert {"check", "format --check"} == set(re.findall(r"\$\(BIN\)/ruff (check|format --check)", recipe))


def test_the_workflow_runs_what_a_merge_has_to_pass() -> None:
    commands = [step["run"] for step in steps() if "run" in step]
    assert commands == [".ci/run"]
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_the_workflow_pins_its_actions_and_its_python() -> None:
    actions = dict(step["uses"].split("@") for step in steps() if "uses" in step)
    assert actions.keys() == {"actions/checkout", "actions/setup-python"}
    assert all(re.fullmatch(r"v\d+\.\d+\.\d+", version) for version in actions.values())
    (python,) = (step["with"]["python-version"] for step in steps() if "with" in step)
    assert python == "3.11"
