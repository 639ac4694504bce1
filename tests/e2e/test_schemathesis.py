"""Schemathesis over the served OpenAPI: no 5xx, no undocumented status, no answer that breaks its schema."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.e2e.api import sync_all
from tests.e2e.conftest import Hub

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def test_generated_requests_meet_only_documented_answers(stack: Hub, tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text('[parameters]\n"path.project" = "fuzzed"\n')
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", f"{stack.http_url}/openapi.json"]
    options = ["--url", stack.http_url, "--checks", CHECKS, "--max-examples", "60", "--seed", "1"]
    options += [
        "--header",
        f"Authorization: {stack.headers(projects=['fuzzed'])['Authorization']}",
        "--phases",
        "examples,coverage,fuzzing",
    ]
    run = subprocess.run([*command, *options], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert sync_all(stack, "fuzzed"), "no generated event was ever committed: the fuzzing did not get past the door"
