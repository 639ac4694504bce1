"""The commands of docs/archive.md and docs/retention.md run as printed and do what the pages say."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.conftest import Hub
from tests.e2e.test_readme import ROOT, blocks
from tests.support.shell import paste


def pasted(stack: Hub, folder: Path, page: str) -> tuple[list[dict[str, object]], str]:
    stack.stack.write(folder / ".local")
    for name in (".venv", "layers"):
        (folder / name).symlink_to(ROOT / name)
    settings = [line for line in blocks()[0].splitlines() if line.startswith(("URL=", "TOKEN="))]
    run = paste("\n".join([*settings, *blocks(page)]), folder)
    assert run.returncode == 0, run.stderr + run.stdout
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")], run.stdout


def test_the_archive_page(stack: Hub, tmp_path: Path) -> None:
    answers, text = pasted(stack, tmp_path, "docs/archive.md")
    first, many, as_protobuf = answers
    assert as_protobuf == {**first, "deduped": True}, "C10"
    assert (first["status"], first["sequence_position"]) == ("committed", 1)
    results = many["results"]
    assert isinstance(results, list)
    assert [(one["status"], one.get("sequence_position")) for one in results] == [("committed", 2), ("rejected", None)]
    assert "The archive is sound." in text


def test_the_retention_page(stack: Hub, tmp_path: Path) -> None:
    answers, text = pasted(stack, tmp_path, "docs/retention.md")
    assert answers[0]["max_age_days"] == 90
    assert (
        answers[1]["partitions"]
        == answers[3]["partitions"]
        == [{"partition": "legal", "advance_to": 0, "max_age_days": 3650, "max_events": None}]
    )
    assert (answers[2]["scope"], answers[2]["max_events"]) == ("*", 10000)
    assert "would go." in text or "No ledger has a retention policy" in text
