"""What can go wrong on the wire to AWS: a refusal that it sent, or no answer at all."""

from __future__ import annotations

from typing import Any


class AwsRefused(Exception):
    """AWS answered with an error. `response` is what botocore's `ClientError` has there."""

    def __init__(self, response: dict[str, Any], operation_name: str) -> None:
        told = response["Error"]
        super().__init__(f"An error occurred ({told['Code']}) when calling the {operation_name} operation")
        self.response = response
        self.operation_name = operation_name

    @property
    def code(self) -> str:
        return str(self.response["Error"]["Code"])


class AwsUnanswered(Exception):
    """No whole answer came. `kind` is botocore's name for it, so that logs say the same on either wire."""

    def __init__(self, kind: str, address: str) -> None:
        super().__init__(f"{kind}: {address}")
        self.kind = kind
