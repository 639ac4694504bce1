"""What can go wrong for a caller of the hub; each class knows the command's exit code.

ClientError
├── Refused       the hub said no (1)
├── Usage         the caller asked for something that makes no sense (2)
│   └── NoHub     no hub was named and none runs here
└── Unreachable   the hub did not answer (3)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """The base: its text is for people."""

    exit_code = 1

    def as_json(self) -> dict[str, Any]:
        return {"code": "client_error", "message": str(self)}


class Refused(ClientError):
    """The hub answered with an error."""

    def __init__(self, status: int, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{code} ({status}): {message}")
        self.status = status
        self.code = code
        self.message = message
        self.details = dict(details or {})

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code, "status": self.status, "message": self.message, "details": self.details}


class Usage(ClientError):
    """The request was not sent."""

    exit_code = 2

    def as_json(self) -> dict[str, Any]:
        return {"code": "usage", "message": str(self)}


class NoHub(Usage):
    """There is no address to send to, or no token."""


class Unreachable(ClientError):
    """No answer, or none that can be read."""

    exit_code = 3

    def as_json(self) -> dict[str, Any]:
        return {"code": "unreachable", "message": str(self)}
