"""The SAM command line accepts the template and builds what the Lambda platform can run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.support.translated import ROOT, of_type, read

SOURCE = read("template.yaml")
FUNCTIONS = sorted(of_type("AWS::Serverless::Function", SOURCE))


def sam(*arguments: str) -> str:
    """Run the SAM command named by the variable SAM; `make test` sets one up in .sam-venv."""
    command = ROOT / os.environ.get("SAM", ".sam-venv/bin/sam")
    assert command.is_file(), f"{command} is missing: run `make test`, or name a SAM command line in the variable SAM"
    environment = os.environ | {"SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "eu-central-1"}
    result = subprocess.run(
        [command, *arguments], cwd=ROOT, env=environment, text=True, capture_output=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sam")
    sam("build", "--build-dir", str(folder / "build"), "--cache-dir", str(folder / "cache"))
    return folder / "build"


@pytest.mark.parametrize("template", ["template.yaml", "infra/monitoring/stack.yaml"])
def test_sam_finds_no_fault_in_a_template(template: str) -> None:
    assert "is a valid SAM Template" in sam("validate", "--lint", "--template", template)


PARSE = """
import json, sys
from samcli.cli.types import CfnParameterOverridesType
print(json.dumps(CfnParameterOverridesType().convert(tuple(sys.argv[1:]), None, None)))
"""


def parsed_by_sam(*overrides: str) -> dict[str, str]:
    command = [str(ROOT / ".sam-venv/bin/python"), "-c", PARSE, *overrides]
    return dict(json.loads(subprocess.run(command, text=True, capture_output=True, check=True).stdout))


def test_the_parameters_of_the_readme_arrive_as_they_are_meant() -> None:
    block = re.search(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block
    overrides = tomllib.loads(block[1])["default"]["deploy"]["parameters"]["parameter_overrides"]
    parsed = parsed_by_sam(*overrides)
    assert parsed["RunJobs"] == "true"
    assert json.loads(parsed["ProjectProfiles"]) == {"acme/orders": "canonical"}
    assert re.search(SOURCE["Parameters"]["ProjectProfiles"]["AllowedPattern"], parsed["ProjectProfiles"])


@pytest.mark.parametrize("name", ["ProjectProfiles", "PrivacyPolicy"])
def test_a_json_parameter_that_sam_has_cut_off_is_refused(name: str) -> None:
    cut_off = parsed_by_sam(name + '={"a/b":"open"}')[name]
    pattern = SOURCE["Parameters"][name]["AllowedPattern"]
    assert not re.search(pattern, cut_off)
    assert re.search(pattern, SOURCE["Parameters"][name]["Default"])


def test_the_layer_holds_the_hub_and_what_it_imports(built: Path) -> None:
    packages = {path.name for path in (built / "CommonLayer" / "python").iterdir()}
    assert packages >= {"millrace", "jwt", "cryptography", "pydantic", "aws_lambda_powertools"}
    swagger_ui = built / "CommonLayer/python/aws_lambda_powertools/event_handler/openapi/swagger_ui"
    assert {"swagger-ui-bundle.min.js", "swagger-ui.min.css"} <= {path.name for path in swagger_ui.iterdir()}


def test_the_layer_leaves_out_what_lambda_brings(built: Path) -> None:
    packages = {path.name for path in (built / "CommonLayer" / "python").iterdir()}
    assert not packages & {"boto3", "botocore"}


def test_the_layers_binaries_are_for_the_lambda_platform(built: Path) -> None:
    compiled = {path.name for path in (built / "CommonLayer").rglob("*.so")}
    assert compiled
    assert all("aarch64-linux-gnu" in name or name.endswith(".abi3.so") for name in compiled)
    assert any("cpython-313" in name for name in compiled)


def test_no_bytecode_of_this_machine_is_shipped(built: Path) -> None:
    assert not list(built.rglob("__pycache__"))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_is_its_folder(built: Path, function: str) -> None:
    source = ROOT / SOURCE["Resources"][function]["Properties"]["CodeUri"]
    expected = {path.name for path in source.iterdir()} - {"__pycache__"}
    assert "app.py" in expected
    assert {path.name for path in (built / function).iterdir()} == expected


def test_the_layer_fits_lambda(built: Path) -> None:
    size = sum(path.stat().st_size for path in (built / "CommonLayer").rglob("*") if path.is_file())
    assert size < 250 * 1024 * 1024
