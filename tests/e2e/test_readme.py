"""The README's shell blocks run as printed, in order, in one shell, beside a running hub."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.e2e.conftest import Hub
from tests.e2e.shell import paste

ROOT = Path(__file__).parents[2]


def blocks() -> list[str]:
    return re.findall(r"^```bash\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def test_the_readmes_commands_do_what_it_says(stack: Hub, tmp_path: Path) -> None:
    stack.stack.write(tmp_path / ".local")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    run = paste("\n".join(blocks()), tmp_path)
    assert run.returncode == 0, run.stderr
    answers = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    first, again, other = (answer["results"][0] for answer in answers[:3])
    assert first == again
    assert first["status"] == "committed"
    assert (other["status"], other["reason"]) == ("rejected", "validation_failed")
    page = answers[3]
    assert [event["id"] for event in page["events"]] == ["order-17-paid"]
    assert "order-17-shipped" in run.stdout


def test_every_file_the_readme_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []
