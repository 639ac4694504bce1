"""Where we deploy to: the clients of the embedded stack or of LocalStack, and the addresses of an API there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from localstack_client.session import Session as LocalStackSession

from local.emulator import REGION

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client

DEFAULT_STAGE = "$default"
SOCKET_STAGE = "live"
CONFIG = Config(
    connect_timeout=5, read_timeout=60, retries={"max_attempts": 3, "mode": "standard"}, s3={"addressing_style": "path"}
)


class Session(Protocol):
    def client(self, service_name: str, **settings: Any) -> Any: ...


@dataclass(frozen=True)
class Cloud:
    kind: str
    session: Session
    endpoint_url: str
    region: str = REGION

    @cached_property
    def cloudformation(self) -> CloudFormationClient:
        return cast("CloudFormationClient", self.client("cloudformation"))

    @cached_property
    def s3(self) -> S3Client:
        return cast("S3Client", self.client("s3"))

    def client(self, service: str) -> Any:
        return self.session.client(service, endpoint_url=self.endpoint_url, config=CONFIG)

    def http_url(self, api_id: str, stage: str = DEFAULT_STAGE) -> str:
        """An API's default stage has no name in its address."""
        suffix = "" if stage == DEFAULT_STAGE else f"/{stage}"
        if self.kind == "localstack":
            port = urlsplit(self.endpoint_url).port or 4566
            return f"http://{api_id}.execute-api.localhost.localstack.cloud:{port}{suffix}"
        return f"{self.endpoint_url}/_aws/execute-api/{api_id}{suffix}"

    def websocket_url(self, api_id: str) -> str:
        return self.http_url(api_id, SOCKET_STAGE).replace("http", "ws", 1)


def at(endpoint_url: str, kind: str = "embedded") -> Cloud:
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION)
    return Cloud(kind, cast("Session", session), endpoint_url)


def localstack() -> Cloud:
    """A LocalStack that already runs; `AWS_ENDPOINT_URL` or `LOCALSTACK_HOST` name another than the usual one."""
    session = LocalStackSession(region_name=REGION)
    return Cloud("localstack", cast("Session", session), str(session.client("s3").meta.endpoint_url))
