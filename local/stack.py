"""The stack that runs: where it answers and what it is made of, kept in a file that clients and tests read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from local.cloud import Cloud

ROOT = Path(__file__).parent.parent
HOME = ROOT / ".local"
STACK_NAME = "millrace"
FILE = "stack.json"


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

    @classmethod
    def of(cls, cloud: Cloud, stack_name: str, outputs: Mapping[str, str]) -> Stack:
        return cls(
            http_url=cloud.http_url(outputs["HttpApiId"]),
            endpoint_url=cloud.endpoint_url,
            region=cloud.region,
            stack_name=stack_name,
            secret_arn=outputs["TokenSecretArn"],
            websocket_url=cloud.websocket_url(outputs["SocketApiId"]),
            archive_bucket=outputs["ArchiveBucketName"],
            tables=_ending(outputs, "TableName"),
            queues=_ending(outputs, "QueueUrl") | _ending(outputs, "DeadLettersUrl", "_dead_letters"),
            functions=_ending(outputs, "FunctionName"),
        )

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
    """The stack that was last written, or None."""
    try:
        return Stack(**json.loads((home / FILE).read_text()))
    except FileNotFoundError:
        return None


def forget(home: Path) -> None:
    (home / FILE).unlink(missing_ok=True)


def _ending(outputs: Mapping[str, str], ending: str, suffix: str = "") -> dict[str, str]:
    """`ClaimsTableName: x` → `claims: x`; `FanOutFunctionName: y` → `fan_out: y`."""
    return {
        _snake(name.removesuffix(ending)) + suffix: value for name, value in outputs.items() if name.endswith(ending)
    }


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
