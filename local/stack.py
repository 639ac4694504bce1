"""The stack that runs: where it answers and what it is made of, kept in a file that clients and tests read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from local.cloud import Cloud
from local.errors import LocalError
from millrace_client.local_stack import answers

ROOT = Path(__file__).parent.parent
HOME = ROOT / ".local"
STACK_NAME = "millrace"
FILE = "stack.json"


class LeftBehind(LocalError):
    """The file is there, and the stack that wrote it is not."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(f"{file} was left behind: {why}. Start the stack again with: make run")


@dataclass(frozen=True)
class Stack:
    http_url: str
    endpoint_url: str
    region: str
    stack_name: str
    secret_arn: str
    websocket_url: str | None = None
    archive_bucket: str = ""
    tables: dict[str, str] = field(default_factory=dict)
    queues: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    pid: int | None = None
    """Of the process that runs it; None where it runs without us, as on LocalStack."""
    since: str = ""
    keeps_data: bool = False
    batch_url: str = ""
    """Of the batch door on a gateway of its own; the path /api/v1/events/batch/ follows."""

    @classmethod
    def of(cls, cloud: Cloud, stack_name: str, outputs: Mapping[str, str]) -> Stack:
        return cls(
            http_url=cloud.http_url(outputs["HttpApiId"]),
            endpoint_url=cloud.endpoint_url,
            region=cloud.region,
            stack_name=stack_name,
            secret_arn=outputs["TokenSecretArn"],
            websocket_url=cloud.websocket_url(outputs["SocketApiId"]),
            batch_url=cloud.http_url(outputs["BatchApiId"]),
            archive_bucket=outputs["ArchiveBucketName"],
            tables=_ending(outputs, "TableName"),
            queues=_ending(outputs, "QueueUrl") | _ending(outputs, "DeadLettersUrl", "_dead_letters"),
            functions=_ending(outputs, "FunctionName"),
        )

    def run_by(self, pid: int, *, keeps_data: bool) -> Stack:
        return replace(self, pid=pid, since=datetime.now(UTC).isoformat(timespec="seconds"), keeps_data=keeps_data)

    def write(self, home: Path) -> None:
        private(home)
        draft = home / f"{FILE}.new"
        draft.write_text(json.dumps(asdict(self), indent=2) + "\n")
        draft.replace(home / FILE)


def private(home: Path) -> None:
    """Make the folder, for its owner's eyes only: what the stack keeps there has its secrets."""
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)


def read(home: Path) -> Stack | None:
    """The stack that runs, or None. Raises `LeftBehind`."""
    file = home / FILE
    try:
        stack = Stack(**json.loads(file.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise LeftBehind(file, f"it cannot be read ({error})") from error
    if stack.pid is not None and not _lives(stack.pid):
        raise LeftBehind(file, f"its process {stack.pid} has ended")
    if not answers(stack.endpoint_url):
        raise LeftBehind(file, f"nothing answers at {stack.endpoint_url}")
    return stack


def required(home: Path) -> Stack:
    """The stack that runs. Raises `LocalError`."""
    running = read(home)
    if running is None:
        raise LocalError("No stack runs here. To start one: make run")
    return running


def living(home: Path) -> Stack | None:
    """The stack that runs; None also when only its file is there."""
    try:
        return read(home)
    except LeftBehind:
        return None


def forget(home: Path) -> None:
    (home / FILE).unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _ending(outputs: Mapping[str, str], ending: str, suffix: str = "") -> dict[str, str]:
    """`ClaimsTableName: x` → `claims: x`; `FanOutFunctionName: y` → `fan_out: y`."""
    return {
        _snake(name.removesuffix(ending)) + suffix: value for name, value in outputs.items() if name.endswith(ending)
    }


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
