"""The hub that runs on this machine: found through `.local/stack.json`, its tokens signed with its own secret."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from millrace_client.errors import NoHub, Unreachable
from millrace_client.tokens import Grant, sign

STACK_FILE = Path(".local") / "stack.json"
SECONDS = httpx.Timeout(10, connect=3)


@dataclass(frozen=True, slots=True)
class LocalStack:
    http_url: str
    endpoint_url: str
    region: str
    secret_arn: str
    websocket_url: str | None = None
    archive_bucket: str | None = None

    def secret(self) -> str:
        return secret_of(self.endpoint_url, self.region, self.secret_arn)


def find(start: Path | None = None) -> LocalStack | None:
    """The stack of this folder or of the nearest one above it. Raises `NoHub` if its file was left behind."""
    folder = folder_of(start)
    if folder is None:
        return None
    stack = _read(folder / STACK_FILE)
    if not answers(stack.endpoint_url):
        raise NoHub(
            f"{folder / STACK_FILE} was left behind: nothing answers at {stack.endpoint_url}. "
            "Start the hub again with `make run`."
        )
    return stack


def answers(endpoint_url: str) -> bool:
    """Does anybody listen there? A stack that was killed leaves its file behind."""
    try:
        address = urlsplit(endpoint_url)
        port = address.port or (443 if address.scheme == "https" else 80)
        with socket.create_connection((address.hostname or "", port), timeout=3):
            return True
    except (OSError, ValueError):
        return False


def folder_of(start: Path | None = None) -> Path | None:
    """This folder, or the nearest one above it, that a stack runs in."""
    here = (start or Path.cwd()).resolve()
    return next((folder for folder in (here, *here.parents) if (folder / STACK_FILE).is_file()), None)


def required(otherwise: str = "") -> LocalStack:
    """`otherwise` says what else the caller can do, with options that it has. Raises `NoHub`."""
    stack = find()
    if stack is None:
        raise NoHub(f"No hub runs here: start one with `make run`{otherwise and f', or {otherwise}'}.")
    return stack


def secret_of(endpoint_url: str, region: str, secret_arn: str) -> str:
    """Raises `Unreachable`, for instance when a stack file was left behind."""
    # The stack emulates AWS and checks no signature; the header only tells it where the secret is.
    where = f"test/20000101/{region}/secretsmanager/aws4_request"
    headers = {
        "Authorization": f"AWS4-HMAC-SHA256 Credential={where}, SignedHeaders=host, Signature=none",
        "Content-Type": "application/x-amz-json-1.1",
        "X-Amz-Target": "secretsmanager.GetSecretValue",
    }
    try:
        answer = httpx.post(endpoint_url, json={"SecretId": secret_arn}, headers=headers, timeout=SECONDS)
        return str(answer.raise_for_status().json()["SecretString"])
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
        raise Unreachable(
            f"Cannot read the signing secret from {endpoint_url}: {error}. If another program answers there, "
            f"{STACK_FILE} was left behind: start the hub again with `make run`."
        ) from error


def token_for(endpoint_url: str, region: str, secret_arn: str, *, client: str, projects: Sequence[str]) -> str:
    """A producer's and consumer's token for all partitions of these projects."""
    return sign(Grant(client, projects), secret_of(endpoint_url, region, secret_arn))


def _read(file: Path) -> LocalStack:
    try:
        content = json.loads(file.read_text())
        return LocalStack(
            content["http_url"],
            content["endpoint_url"],
            content["region"],
            content["secret_arn"],
            content.get("websocket_url"),
            content.get("archive_bucket"),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoHub(f"{file} cannot be read: {error!r}. Start the hub again with `make run`.") from error
