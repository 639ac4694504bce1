"""The emulator, seen from outside: is the port free, start it, wait for it, stop it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from local.errors import LocalError

HOST = "127.0.0.1"
REGION = "us-east-1"
START_SECONDS = 30
STOP_SECONDS = 3
"""Open sockets can hold it up for long; it keeps nothing that would be worth the wait."""


class PortBusy(LocalError):
    """Somebody else listens there."""

    def __init__(self, port: int) -> None:
        super().__init__(
            f"Port {port} is in use by another program. Stop that program, or choose another port: make run PORT=4600"
        )


class EmulatorFailed(LocalError):
    """The emulator ended, or never answered."""

    def __init__(self, log: Path) -> None:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log.exists() else ""
        super().__init__(f"The emulator did not start. The end of {log}:\n{tail}")


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        if probe.connect_ex((HOST, port)) == 0:
            return False
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """For stacks nobody looks for: any port, or one of `MILLRACE_PORTS` (`4600-4609`) on a shared machine."""
    first, _, last = os.environ.get("MILLRACE_PORTS", "").partition("-")
    if first:
        choices = list(range(int(first), int(last or first) + 1))
        # Two that choose at once should seldom choose the same.
        random.shuffle(choices)
        port = next((port for port in choices if port_is_free(port)), None)
        if port is None:
            raise LocalError(f"No port of {first}-{last or first} is free.")
        return port
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextmanager
def emulator(home: Path, port: int) -> Iterator[str]:
    """Run the emulator with its files under `home`; yields its endpoint, and leaves no process behind."""
    if not port_is_free(port):
        raise PortBusy(port)
    state = home / "state"
    shutil.rmtree(state, ignore_errors=True)
    log = home / "emulator.log"
    environment = _environment(state, port)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "local.launch"],
            cwd=Path(__file__).parent.parent,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for whoever started us; it ends the emulator in order.
            start_new_session=True,
        )
    try:
        endpoint = f"http://{HOST}:{port}"
        _wait_until_ready(process, endpoint, log)
        yield endpoint
    finally:
        _end(process)
        shutil.rmtree(state, ignore_errors=True)


def _environment(state: Path, port: int) -> dict[str, str]:
    """The caller's AWS settings stay out: Lambda processes inherit what the emulator gets."""
    folders = {"TMPDIR": state / "tmp", "STATE_DIR": state / "state", "S3_DATA_DIR": state / "s3"}
    for folder in folders.values():
        folder.mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "LAMBDA_"))}
    return kept | {
        **{name: str(folder) for name, folder in folders.items()},
        "BIND_HOST": HOST,
        "GATEWAY_PORT": str(port),
        "MINISTACK_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_SECRET_ACCESS_KEY": "test",
        "LOG_LEVEL": "WARNING",
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        # A developer's targets are on this machine; the template has no way to allow that.
        "MILLRACE_LOOPBACK_TARGETS": "yes",
    }


def _wait_until_ready(process: subprocess.Popen[bytes], endpoint: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(f"{endpoint}/_ministack/health", timeout=2).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise EmulatorFailed(log)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdin:
        process.stdin.close()
