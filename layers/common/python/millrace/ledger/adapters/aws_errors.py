"""Errors of AWS become ours here, once: those of boto3, and those of the lean wire."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from millrace.ledger.adapters.wire.failures import AwsRefused, AwsUnanswered
from millrace.ledger.domain.errors import BadRequest, MillraceError, Rejected, Throttled, TooLarge, Unavailable

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

THROTTLES = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "ProvisionedThroughputExceeded",
        "ThrottlingException",
        "ThrottlingError",
        "Throttling",
        "RequestLimitExceeded",
        "TooManyRequestsException",
    }
)


INVALID = frozenset({"ValidationException", "ValidationError"})
MOST_KEY_BYTES, MOST_SORT_BYTES, MOST_ITEM_BYTES = 2048, 1024, 400 * 1024
KEY_TOO_LONG = re.compile(r"(hash|range) ?keys? has exceeded", re.IGNORECASE)
KEY_EMPTY = re.compile(r"key attribute cannot contain an empty", re.IGNORECASE)
ITEM_TOO_LARGE = re.compile(r"item size (to update )?has exceeded|size.*exceeded the maximum allowed", re.IGNORECASE)


def refusals() -> tuple[type[ClientError], ...]:
    """What to catch where AWS may refuse a call. Only a process that uses boto3 has loaded its errors."""
    known = cast("type[ClientError]", AwsRefused)
    botocore = sys.modules.get("botocore.exceptions")
    return (known,) if botocore is None else (known, botocore.ClientError)


def _silences() -> tuple[type[Exception], ...]:
    """What is raised if AWS does not answer."""
    botocore = sys.modules.get("botocore.exceptions")
    return (AwsUnanswered,) if botocore is None else (AwsUnanswered, botocore.BotoCoreError)


@contextmanager
def translated() -> Iterator[None]:
    """Around every call to AWS: throttling is `Throttled`, a value that no table takes `Rejected`, any other failure
    `Unavailable`."""
    try:
        yield
    except refusals() as error:
        raise _translated(error) from error
    except _silences() as error:
        raise Unavailable("Storage did not answer.", cause=code_of(error)) from error


def _translated(error: ClientError) -> MillraceError:
    told: Any = error.response.get("Error", {})
    code = str(told.get("Code", ""))
    if code in THROTTLES:
        return Throttled("Storage is throttled; send the same ids again later.", cause=code)
    reasons: Any = error.response.get("CancellationReasons") or [told]
    refused = (refusal_of(str(one.get("Code", "")), str(one.get("Message", ""))) for one in reasons)
    return next(filter(None, refused), Unavailable("Storage refused or failed the call.", cause=code))


def refusal_of(code: str, message: str) -> Rejected | None:
    """What is wrong with the caller's own values, if that is why DynamoDB refused: the same again would be refused for
    ever. None: for another reason."""
    if code not in INVALID:
        return None
    if KEY_TOO_LONG.search(message):
        rule = (
            f"Names and ids of this request make a key of more than {MOST_KEY_BYTES} bytes, or {MOST_SORT_BYTES} in it."
        )
        return BadRequest(f"{rule} Send shorter ones.", max_bytes=MOST_KEY_BYTES)
    if KEY_EMPTY.search(message):
        return BadRequest("A name or an id of this request is empty.")
    if ITEM_TOO_LARGE.search(message):
        rule = f"What is to be stored of this request in one piece is larger than {MOST_ITEM_BYTES} bytes."
        return TooLarge(rule, max_bytes=MOST_ITEM_BYTES)
    return None


def condition_failed(error: ClientError) -> bool:
    """A conditional write met another state than it expected: an answer, not a failure."""
    return error.response.get("Error", {}).get("Code") == "ConditionalCheckFailedException"


def applied(write: Callable[[], Any]) -> bool:
    """Do a conditional write; False when its condition did not hold."""
    with translated():
        try:
            write()
        except refusals() as error:
            if not condition_failed(error):
                raise
            return False
    return True


def code_of(error: BaseException | None) -> str:
    """What AWS calls a failure: never the text, which may repeat what was asked for."""
    response = getattr(error, "response", {})
    return str(response.get("Error", {}).get("Code") or getattr(error, "kind", type(error).__name__))
