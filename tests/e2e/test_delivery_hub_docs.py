"""The examples of docs/delivery-hub.md do what it says."""

from __future__ import annotations

import base64
import gzip
import json
import re
import time
from pathlib import Path

from millrace.delivery.domain.hub_targets import FIELDS
from millrace.delivery.domain.signing import headers
from tests.e2e.conftest import Hub
from tests.support.shell import paste

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "delivery-hub.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_commands_do_what_the_page_says(stack: Hub, tmp_path: Path) -> None:
    stack.stack.write(tmp_path / ".local")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    run = paste("\n".join(blocks("bash")), tmp_path)
    assert run.returncode == 0, run.stderr
    batch, made, seen, listed, status, asked = (json.loads(line) for line in run.stdout.splitlines())
    assert [(one["event_id"], one["status"]) for one in batch["results"]] == [
        ("build-17", "success"),
        ("build-18", "rejected"),
    ]
    assert made == seen
    assert listed.keys() == {"deliveries", "next_after"}
    assert status["delivery_targets"][0]["target_id"] == "archive"
    assert asked == {"asked": True}
    stack.http.delete("/v1/targets/archive", headers=stack.headers(roles=["operator"])).raise_for_status()


def test_the_receivers_example_accepts_what_we_sign() -> None:
    [script] = blocks("python")
    names: dict[str, object] = {}
    exec(compile(script, "received", "exec"), names)
    received = names["received"]
    assert callable(received)
    secret, body = "whsec_" + base64.b64encode(b"x" * 32).decode(), b'{"events":[]}'
    signed = headers("m1", int(time.time()), body, [secret])
    assert received(secret, signed, body) == {"events": []}
    assert received(secret, {**signed, "content-encoding": "gzip"}, gzip.compress(body)) == {"events": []}


def test_every_field_of_a_target_is_explained() -> None:
    assert {name for name in FIELDS if f"| `{name}` |" not in PAGE} == set()
