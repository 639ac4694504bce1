"""The `stack` fixture: a whole hub of our own, deployed from `template.yaml`, never the developer's running one."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest

from local import cloud
from local.deploy import deploy
from local.embedded import embedded_stack, wait_until_healthy
from local.emulator import PortBusy, free_port
from local.stack import ROOT, Stack
from millrace_client.local_stack import secret_of
from millrace_client.tokens import Grant, sign_claims

TRIES = 3


@dataclass(frozen=True)
class Hub:
    """A hub that answers, and what a test needs to talk to it."""

    stack: Stack
    secret: str
    http: httpx.Client
    """Without a token; its base is the hub's address."""

    @property
    def http_url(self) -> str:
        return self.stack.http_url

    @property
    def ws_url(self) -> str:
        assert self.stack.websocket_url
        return self.stack.websocket_url

    @property
    def endpoint_url(self) -> str:
        return self.stack.endpoint_url

    @property
    def tables(self) -> dict[str, str]:
        return self.stack.tables

    def client(self, service: str) -> Any:
        """A boto3 client of the stack's AWS."""
        return _client(self.endpoint_url, service)

    def token(self, *, signed_with: str | None = None, **claims: Any) -> str:
        """A token of client C1 for everything in project `demo`; claims given here replace those, None removes one."""
        every = Grant("C1", ["demo"]).claims(int(time.time())) | claims
        chosen = {name: value for name, value in every.items() if value is not None}
        return sign_claims(chosen, signed_with or self.secret)

    def headers(self, **claims: Any) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(**claims)}"}


@cache
def _client(endpoint_url: str, service: str) -> Any:
    """Making one takes longer than most calls with it; threads may share it."""
    return cloud.at(endpoint_url).client(service)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    endpoint_url = os.environ.get("MILLRACE_TEST_ENDPOINT")
    with ExitStack() as cleanup:
        if endpoint_url:
            running = cleanup.enter_context(_deployed_to(endpoint_url))
        else:
            home = tmp_path_factory.mktemp("hub") / ".local"
            running = _started(home, cleanup)
        secret = secret_of(running.endpoint_url, running.region, running.secret_arn)
        http = cleanup.enter_context(httpx.Client(base_url=running.http_url, timeout=60))
        yield Hub(running, secret, http)


def _started(home: Path, cleanup: ExitStack) -> Stack:
    """Between choosing a free port and listening on it, another test run may take it."""
    for _ in range(TRIES - 1):
        try:
            return cleanup.enter_context(embedded_stack(home, free_port()))
        except PortBusy:
            continue
    return cleanup.enter_context(embedded_stack(home, free_port()))


@contextmanager
def _deployed_to(endpoint_url: str) -> Iterator[Stack]:
    """Under a name of its own, beside whatever is there. LocalStack wants what `make build` made."""
    is_ours = httpx.get(f"{endpoint_url}/_ministack/health").is_success
    where = cloud.at(endpoint_url, "embedded" if is_ours else "localstack")
    template = ROOT / "template.yaml" if is_ours else ROOT / ".aws-sam" / "build" / "template.yaml"
    name = f"millrace-test-{uuid.uuid4().hex[:8]}"
    running = Stack.of(where, name, deploy(where, template, name))
    try:
        wait_until_healthy(running)
        yield running
    finally:
        where.cloudformation.delete_stack(StackName=name)
