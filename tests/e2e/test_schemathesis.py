"""Schemathesis over the served OpenAPI: no 5xx, no undocumented status, no answer that breaks its schema."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import Hub

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
SESSION = "sess_123"
"""The session of the described examples, so that its readers find something."""
EXAMPLES = os.environ.get("MILLRACE_FUZZ", "10")
PHASES = os.environ.get("MILLRACE_FUZZ_PHASES", "examples,fuzzing")
RUNTIME = "/v1/runtimes/rt-1"
EVERYONE = ["producer", "consumer", "operator"]


def test_generated_requests_meet_only_documented_answers(stack: Hub, tmp_path: Path) -> None:
    bearer = stack.headers(tenant="fuzzed", projects=["fuzzed"], partitions=["*"], roles=EVERYONE)
    agreed = stack.http.post(f"{RUNTIME}/negotiate", json={"supported_contract_versions": [2]}, headers=bearer)
    assert agreed.is_success, agreed.text
    asked = {"reason": "generated requests", "ttl_s": 86_400}
    grant = stack.http.post(f"{RUNTIME}/diagnostics/grants", json=asked, headers=bearer).json()
    fixed = {
        "path.project": "fuzzed",
        "path.sessionId": SESSION,
        "path.runtime_id": "rt-1",
        "path.stream_id": "delivery",
        "path.grant_id": grant["grant_id"],
    }
    parameters = "".join(f'"{name}" = "{value}"\n' for name, value in fixed.items())
    (tmp_path / "schemathesis.toml").write_text(f"[parameters]\n{parameters}")
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", f"{stack.http_url}/openapi.json"]
    options = ["--url", stack.http_url, "--checks", CHECKS, "--max-examples", EXAMPLES, "--seed", "1"]
    options += ["--header", f"Authorization: {bearer['Authorization']}", "--phases", PHASES]
    run = subprocess.run([*command, *options], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    unheard = "nothing was ever stored: no request got past the door"
    synced = stack.http.post("/v1/projects/fuzzed/sync", json={"since_committed_id": 0}, headers=bearer).json()
    assert synced["events"], unheard
    spoken = stack.http.get(f"/v1/realtime/sessions/{SESSION}/transcript", headers=bearer).json()
    assert spoken["utterances"], unheard
    counted = stack.http.get("/v1/realtime/metrics", headers=bearer).json()
    assert counted["emitted"], unheard
    assert counted["invalid"], "no generated event was ever refused"
    status = stack.http.get(f"{RUNTIME}/status", headers=bearer).json()
    assert {one["stream_id"] for one in status["streams"]} == {"delivery", "markers"}, unheard
    actions = _audited_actions(stack, bearer)
    assert "grant_made" in actions, unheard
    assert actions & {"raw_read", "raw_read_refused"}, unheard  # another request may have revoked the grant first


def _audited_actions(stack: Hub, bearer: dict[str, str]) -> set[str]:
    """The actions of all entries, page by page: the generated requests of operators leave more than one page."""
    actions: set[str] = set()
    after, read_to = 0, -1
    while after != read_to:
        read_to = after
        page = stack.http.get("/v1/audit", params={"after": after, "max": 100}, headers=bearer).json()
        actions |= {entry["action"] for entry in page["events"]}
        after = page["next_after"]
    return actions
