"""The wire to WebSocket connections: API Gateway's management API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millrace.ledger.adapters.aws_errors import refusals, translated

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from mypy_boto3_apigatewaymanagementapi import ApiGatewayManagementApiClient


@dataclass(frozen=True, slots=True)
class ApiGatewayWire:
    client: ApiGatewayManagementApiClient

    def post(self, connection: str, text: str) -> bool:
        with translated():
            try:
                self.client.post_to_connection(ConnectionId=connection, Data=text.encode())
            except refusals() as error:
                if not _gone(error):
                    raise
                return False
        return True

    def close(self, connection: str) -> None:
        with translated():
            try:
                self.client.delete_connection(ConnectionId=connection)
            except refusals() as error:
                if not _gone(error):
                    raise


def _gone(error: ClientError) -> bool:
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status in (410, 404) or error.response.get("Error", {}).get("Code") == "GoneException"
