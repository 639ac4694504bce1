"""What Glue gets: the scripts, and a zip of modules that need nothing but Spark and boto3."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from local.jobs import PINNED, SCRIPTS, WHEELS, ZIP, build, pins, zipped

CHECK = """
import sys
from importlib.abc import MetaPathFinder

ABSENT = {"pydantic", "aws_lambda_powertools", "httpx", "jwt", "cryptography", "typer", "rich"}

class NotOnGlue(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ImportError(f"{name} is not installed on Glue")

sys.meta_path.insert(0, NotOnGlue())
sys.path.insert(0, sys.argv[1])
import glue_jobs.compact.main, glue_jobs.retain.job, millrace
assert millrace.__path__[0].startswith(sys.argv[1]), millrace.__path__
"""


def test_equal_sources_make_an_equal_zip(tmp_path: Path) -> None:
    first, second = (build(tmp_path / name)[0].read_bytes() for name in ("a", "b"))
    assert first == second


def test_the_zip_holds_modules_and_nothing_else(tmp_path: Path) -> None:
    made = build(tmp_path)
    assert [path.name for path in made] == [ZIP, *SCRIPTS]
    names = zipfile.ZipFile(tmp_path / ZIP).namelist()
    assert {"millrace/__init__.py", "millrace/lake/domain/archive.py", "glue_jobs/__init__.py"} <= set(names)
    assert all(name.endswith(".py") for name in names)


def test_the_jobs_import_nothing_that_glue_does_not_have(tmp_path: Path) -> None:
    build(tmp_path)
    command = [sys.executable, "-c", CHECK, str(tmp_path / ZIP)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_the_wheels_are_those_that_are_pinned_and_listed_as_glue_wants_them(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    for wheel in ("some_thing-1.0-py3-none-any.whl", "some_thing-0.9-py3-none-any.whl", "other-2-cp311-x.whl"):
        (tmp_path / "wheels" / wheel).write_bytes(wheel.encode())
    with zipfile.ZipFile(zipped(tmp_path, ["other==2", "some-thing==1.0"])) as made:
        assert made.read("wheels/requirements.txt") == b"other==2\nsome-thing==1.0\n"
        assert made.namelist()[1:] == ["wheels/other-2-cp311-x.whl", "wheels/some_thing-1.0-py3-none-any.whl"]
    with pytest.raises(LookupError, match="0 wheels of other==3"):
        zipped(tmp_path, ["other==3"])


def test_what_the_jobs_bring_has_iceberg_and_nothing_for_laptops() -> None:
    brought = {pin.partition("==")[0] for pin in pins(PINNED.read_text())}
    assert brought >= {"boto3", "pyarrow", "pyiceberg"}
    assert not brought & {"sqlalchemy", "pyspark", "aws-lambda-powertools"}
    assert WHEELS.endswith(".gluewheels.zip"), "Glue knows it by this"
