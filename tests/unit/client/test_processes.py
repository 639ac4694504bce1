"""Several real processes on one journal: they capture at once, and never drain at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from millrace_client.journal.sqlite.database import Database
from tests.support.local_target import accept, local_target

MILLRACE = [sys.executable, "-c", "import sys; from millrace_client.commands.cli import main; sys.exit(main())"]
CAPTURE = """
import sys
from pathlib import Path
from millrace_client.journal.local_journal import LocalJournal
with LocalJournal(Path(sys.argv[1])) as journal:
    for number in range(25):
        journal.capture({"event_id": f"{sys.argv[2]}-{number}", "event_type": "note"})
"""


@pytest.mark.slow
def test_processes_that_capture_and_drain_at_once_send_every_event_once(tmp_path: Path) -> None:
    writers, drainers = 3, 3
    with local_target(accept) as target:
        (tmp_path / "config.toml").write_text(f'[sync.targets.t]\ntype = "stub"\nurl = "{target.url}"\n')
        started = [
            subprocess.Popen([sys.executable, "-c", CAPTURE, str(tmp_path), f"w{number}"]) for number in range(writers)
        ]
        started += [
            subprocess.Popen([*MILLRACE, "sync", "now", "--home", str(tmp_path)], stderr=subprocess.DEVNULL)
            for _ in range(drainers)
        ]
        codes = [process.wait(60) for process in started]
        assert codes[:writers] == [0] * writers
        assert set(codes[writers:]) <= {0, 1}
        last = subprocess.run([*MILLRACE, "sync", "now", "--home", str(tmp_path)], check=False, timeout=60)
        assert last.returncode == 0
    sent = [id_ for request in target.requests for id_ in request.ids]
    assert sorted(sent) == sorted(f"w{writer}-{number}" for writer in range(writers) for number in range(25))
    with Database(tmp_path / "event_journal.db") as database:
        left = database.connection.execute("SELECT DISTINCT status FROM delivery_ledger").fetchall()
    assert left == [("success",)]
    for writer in range(writers):
        own = [id_ for id_ in sent if id_.startswith(f"w{writer}-")]
        assert own == [f"w{writer}-{number}" for number in range(25)], "in the order they were captured"
