"""The embedded stack as one thing: the emulator, the template deployed into it, and a hub that answers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from local import cloud, stack
from local.deploy import deploy
from local.emulator import emulator
from local.errors import LocalError
from local.stack import ROOT, STACK_NAME, Stack

HEALTHY_SECONDS = 60


@contextmanager
def embedded_stack(home: Path, port: int, parameters: Mapping[str, str] | None = None) -> Iterator[Stack]:
    """Start, deploy, wait until healthy; `stack.json` under `home` exists exactly as long as the stack answers."""
    stack.private(home)
    with emulator(home, port) as endpoint_url:
        where = cloud.at(endpoint_url)
        running = Stack.of(where, STACK_NAME, deploy(where, ROOT / "template.yaml", STACK_NAME, parameters))
        wait_until_healthy(running)
        running.write(home)
        try:
            yield running
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
