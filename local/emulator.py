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
from dataclasses import dataclass
from pathlib import Path

import httpx

from local.errors import LocalError
from local.saves import Save, unpack

HOST = "127.0.0.1"
REGION = "us-east-1"
START_SECONDS = 30
STOP_SECONDS = 3
"""Open sockets can hold it up for long; without `keep` it has nothing that would be worth the wait."""
SAVE_SECONDS = 140
SAVE = signal.SIGUSR1
"""See `local.keep`, which this process does not import: it is the emulator's."""


class PortBusy(LocalError):
    """Somebody else listens there."""

    def __init__(self, port: int) -> None:
        super().__init__(
            f"Port {port} is in use by another program. Stop that program, or choose another port: make run PORT=4600"
        )


class EmulatorFailed(LocalError):
    """The emulator ended while it started, or never answered."""

    def __init__(self, log: Path) -> None:
        super().__init__(f"The emulator did not start. {_tail(log)}")


class EmulatorDied(LocalError):
    """The emulator ended by itself."""

    def __init__(self, code: int, log: Path) -> None:
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        super().__init__(f"The emulator has died ({how}). {_tail(log)}")


class NotSaved(LocalError):
    """The emulator was stopped, and could not save its data."""

    def __init__(self, log: Path) -> None:
        super().__init__(f"The data could not be saved; the last save stays. {_tail(log)}")


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-15:] if log.exists() else []
    return "\n".join([f"The end of {log}:", *lines]) if lines else f"{log} says nothing."


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


@dataclass
class Emulator:
    """One that answers."""

    endpoint_url: str
    process: subprocess.Popen[bytes]
    log: Path
    saves: bool = False

    def wait(self) -> None:
        """Blocks as long as it lives. Raises `EmulatorDied`."""
        raise EmulatorDied(self.process.wait(), self.log)

    def begin_saving(self) -> None:
        """The hub in it is whole; from now on it is worth keeping."""
        self.saves = True
        self.process.send_signal(SAVE)


@contextmanager
def emulator(home: Path, port: int, save: Save | None = None, *, keep: bool = False) -> Iterator[Emulator]:
    """Run the emulator with its files under `home`, and leave no process behind.

    `save` is what it goes on with. With `keep` its own data is saved too, from `begin_saving` on; raises `NotSaved` if
    that fails in the end.
    """
    if not port_is_free(port):
        raise PortBusy(port)
    state = home / "state"
    shutil.rmtree(state, ignore_errors=True)
    environment = _environment(state, port, keep=keep)
    if save is not None:
        unpack(save, state)
    log = home / "emulator.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "local.launch", *(["--keep", str(home.absolute())] if keep else [])],
            cwd=Path(__file__).parent.parent,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for whoever started us; it ends the emulator in order.
            start_new_session=True,
        )
    started = Emulator(f"http://{HOST}:{port}", process, log)
    try:
        _wait_until_ready(started)
        yield started
    finally:
        in_order = _end(process, SAVE_SECONDS if started.saves else STOP_SECONDS)
        shutil.rmtree(state, ignore_errors=True)
    if started.saves and not in_order:
        raise NotSaved(log)


def _environment(state: Path, port: int, *, keep: bool = False) -> dict[str, str]:
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
        **({"PERSIST_STATE": "1", "S3_PERSIST": "1"} if keep else {}),
        # A developer's targets are on this machine; the template has no way to allow that.
        "MILLRACE_LOOPBACK_TARGETS": "yes",
    }


def _wait_until_ready(started: Emulator) -> None:
    deadline = time.monotonic() + START_SECONDS
    while started.process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(f"{started.endpoint_url}/_ministack/health", timeout=2).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise EmulatorFailed(started.log)


def _end(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """End it and every function process it leaves behind. Says whether it ended in order, when it was asked to."""
    died = process.poll() is not None
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    in_order = not died and process.poll() == 0
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin:
        process.stdin.close()
    return in_order
