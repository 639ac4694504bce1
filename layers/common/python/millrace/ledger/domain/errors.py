"""Every error Millrace raises on purpose. Status and code sit on the class, data on the instance.

MillraceError
├── Rejected                 the caller's mistake; nothing was changed
│   ├── BadRequest           400 bad_request
│   ├── AuthFailed           401 auth_failed
│   ├── Forbidden            403 forbidden
│   ├── NotFound             404 not_found
│   ├── Conflict             409 conflict
│   │   └── UnreadableRow    409 conflict; what is stored has a form that nobody knows
│   └── TooLarge             413 too_large
└── Unavailable              503 server_error; the outcome may be unknown, a retry under the same ids is safe
    ├── Contention           503 server_error; other writers kept winning
    └── Throttled            429 rate_limited; storage asked to slow down
        └── LedgerBusy       429 rate_limited; more requests wait for one ledger than it can take
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class MillraceError(Exception):
    """Base of the tree. `details` never holds payload values or secrets."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "server_error"
    retry_after_ms: int | None = None

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: Mapping[str, Any] = details


class Rejected(MillraceError):
    """The caller has to change something before trying again."""

    status, code = 400, "bad_request"


class BadRequest(Rejected):
    """The request as a whole breaks a rule; `field` names where."""


class AuthFailed(Rejected):
    """No token, or one that cannot be trusted."""

    status, code = 401, "auth_failed"


class Forbidden(Rejected):
    """A good token that does not reach this far."""

    status, code = 403, "forbidden"


class NotFound(Rejected):
    """No such route or thing."""

    status, code = 404, "not_found"


class Conflict(Rejected):
    """What is asked for contradicts what is stored."""

    status, code = 409, "conflict"


class UnreadableRow(Conflict):
    """A stored row is in no form that we know. `what` and `key` name it; its content is told nobody."""

    def __init__(self, what: str, key: str, cause: str = "") -> None:
        super().__init__("What is stored of this cannot be read.", what=what, key=key, cause=cause)


def unheard(_row: UnreadableRow) -> None:
    """The default of those who pass over a row that they cannot read: nobody listens."""


class TooLarge(Rejected):
    """Over a size limit; `max_bytes` and `actual_bytes` say by how much."""

    status, code = 413, "too_large"


class Unavailable(MillraceError):
    """Storage did not answer. Whether the write happened is unknown; the same request again is safe."""

    status, code, retry_after_ms = 503, "server_error", 1000


class Contention(Unavailable):
    """Other writers of this ledger won every try."""


class Throttled(Unavailable):
    """Storage asked to slow down."""

    status, code, retry_after_ms = 429, "rate_limited", 1000


class LedgerBusy(Throttled):
    """More requests wait for this ledger than it can take soon."""
