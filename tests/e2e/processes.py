"""The processes in which the emulator runs functions, for tests that kill them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tests.e2e.conftest import Hub


def function_processes(hub: Hub, function: str | None = None) -> list[int]:
    """The children of the emulator that has the hub's port; of one function if it is named."""
    port = hub.endpoint_url.rsplit(":", 1)[1]
    wanted = {f"GATEWAY_PORT={port}".encode()}
    if function is not None:
        wanted.add(f"AWS_LAMBDA_FUNCTION_NAME={function}".encode())
    children: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            is_emulator = b"local.launch" in Path(f"/proc/{parent}/cmdline").read_bytes()
            if is_emulator and wanted <= set((folder / "environ").read_bytes().split(b"\0")):
                children.append(int(folder.name))
    return children


def emulator_process(hub: Hub) -> int:
    """The emulator that has the hub's port."""
    port = f"GATEWAY_PORT={hub.endpoint_url.rsplit(':', 1)[1]}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_emulator = b"local.launch" in (folder / "cmdline").read_bytes()
            if is_emulator and port in (folder / "environ").read_bytes().split(b"\0"):
                return int(folder.name)
    raise AssertionError("the hub has no emulator on this machine")
