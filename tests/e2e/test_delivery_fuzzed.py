"""Generated requests to the doors of delivery, by an operator, meet only documented answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import Hub
from tests.e2e.test_schemathesis import CHECKS, EXAMPLES, PHASES

FIXED = '[parameters]\n"path.target_id" = "fuzzed"\n'


def test_generated_requests_of_an_operator_meet_only_documented_answers(stack: Hub, tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(FIXED)
    roles = ["producer", "consumer", "operator"]
    bearer = stack.headers(tenant="fuzzed-delivery", partitions=["*"], roles=roles)
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", f"{stack.http_url}/openapi.json"]
    options = ["--url", stack.http_url, "--checks", CHECKS, "--max-examples", EXAMPLES, "--seed", "1"]
    options += ["--include-tag", "delivery", "--phases", PHASES]
    options += ["--header", f"Authorization: {bearer['Authorization']}"]
    run = subprocess.run([*command, *options], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    answer = stack.http.post("/api/v1/events/batch/", json=EXAMPLE, headers=bearer).json()
    assert answer["results"][0]["status"] in ("duplicate", "rejected"), "no batch got past the door"


EXAMPLE = {"events": [{"event_id": "build-17-done", "event_type": "build.done", "payload": {"build": 17}}]}
