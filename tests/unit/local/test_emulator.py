"""The emulator as its owner sees it, with any process in its place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from local import emulator as module
from local.emulator import Emulator, EmulatorDied, NotSaved, emulator, free_port

SERVER = """
import http.server, os, signal, sys, threading
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
signal.signal(signal.SIGUSR1, lambda *_: print("saving", flush=True))
signal.signal(signal.SIGTERM, lambda *_: os._exit({code}))
http.server.HTTPServer(("127.0.0.1", int(os.environ["GATEWAY_PORT"])), Answer).serve_forever()
"""


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Instead of the emulator, a small server starts; the list holds the code with which it ends when asked to."""
    code = [0]
    popen = subprocess.Popen

    def start(command: list[str], **settings: object) -> subprocess.Popen[bytes]:
        assert command[1:3] == ["-m", "local.launch"]
        return popen([sys.executable, "-c", SERVER.format(code=code[0])], **settings)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(subprocess, "Popen", start)
    return code


def test_its_death_ends_the_wait_and_is_told_with_the_end_of_its_log(launched: list[int], tmp_path: Path) -> None:
    with emulator(tmp_path, free_port()) as emulated:
        emulated.log.write_text("one\nits last words")
        emulated.process.kill()
        with pytest.raises(EmulatorDied, match=r"killed by SIGKILL[\s\S]*its last words"):
            emulated.wait()


def kill(emulated: Emulator) -> None:
    emulated.begin_saving()
    emulated.process.kill()
    emulated.process.wait()


def test_a_stop_that_saves_nothing_is_not_passed_over(launched: list[int], tmp_path: Path) -> None:
    launched[0] = 1
    with emulator(tmp_path, free_port(), keep=True):
        pass  # nothing was worth saving yet
    with pytest.raises(NotSaved), emulator(tmp_path, free_port(), keep=True) as emulated:
        emulated.begin_saving()
    with pytest.raises(NotSaved), emulator(tmp_path, free_port(), keep=True) as emulated:
        kill(emulated)
    launched[0] = 0
    with emulator(tmp_path, free_port(), keep=True) as emulated:
        emulated.begin_saving()


def test_only_what_is_asked_for_is_kept_by_the_emulator(tmp_path: Path) -> None:
    kept = {"PERSIST_STATE", "S3_PERSIST"}
    assert not kept & module._environment(tmp_path / "a", 1).keys()
    assert kept <= module._environment(tmp_path / "b", 1, keep=True).keys()


def test_an_exit_code_is_told_too(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        emulated = Emulator("http://x", process, tmp_path / "none.log")
        with pytest.raises(EmulatorDied, match=r"exit code 3\).*says nothing"):
            emulated.wait()
