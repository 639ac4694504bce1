"""The embedded stack as one thing: the emulator, the template deployed into it, and a hub that answers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import httpx

from local import cloud, saves, stack
from local.deploy import deploy
from local.emulator import Emulator, emulator
from local.errors import LocalError
from local.stack import ROOT, STACK_NAME, Stack

HEALTHY_SECONDS = 60

HURRIED = {"IndexDelay": "1", "TenantDrains": "4", "TenantSlowDrains": "2"}
"""Parameters with which a stack on one machine need not be waited for. Its queues have few readers (`local.launch`):
one tenant's share leaves some to the others."""

Keep = Literal["1", "new"]
"""Keep the data, and go on with what was kept before; or begin anew."""


@contextmanager
def embedded_stack(home: Path, port: int, parameters: Mapping[str, str] | None = None) -> Iterator[Stack]:
    """A stack that begins empty, and whose data goes with it."""
    with running_stack(home, port, parameters) as (running, _):
        yield running


@contextmanager
def running_stack(
    home: Path, port: int, parameters: Mapping[str, str] | None = None, keep: Keep | None = None
) -> Iterator[tuple[Stack, Emulator]]:
    """Start, deploy, wait until healthy; `stack.json` under `home` exists exactly as long as the stack answers."""
    stack.private(home)
    save = saves.to_continue(home, port) if keep == "1" else None
    with emulator(home, port, save, keep=keep is not None) as emulated:
        where = cloud.at(emulated.endpoint_url)
        outputs = deploy(where, ROOT / "template.yaml", STACK_NAME, {**HURRIED, **(parameters or {})})
        running = Stack.of(where, STACK_NAME, outputs).run_by(os.getpid(), keeps_data=keep is not None)
        wait_until_healthy(running)
        if keep is not None:
            emulated.begin_saving()
        running.write(home)
        try:
            yield running, emulated
        finally:
            stack.forget(home)


def wait_until_healthy(running: Stack) -> None:
    deadline, answer = time.monotonic() + HEALTHY_SECONDS, "nothing"
    while time.monotonic() < deadline:
        try:
            response = httpx.get(f"{running.http_url}/health", timeout=30)
        except httpx.TransportError as error:
            answer = repr(error)
        else:
            if response.status_code == httpx.codes.OK:
                return
            answer = f"{response.status_code} {response.text[:500]}"
        time.sleep(0.2)
    raise LocalError(f"{running.http_url}/health did not answer 200 in {HEALTHY_SECONDS} s. Its last answer: {answer}")
