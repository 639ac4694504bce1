"""botocore's errors become ours here, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from millrace.ledger.domain.errors import Throttled, Unavailable

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


@contextmanager
def translated() -> Iterator[None]:
    """Around every call to AWS: throttling is `Throttled`, any other failure `Unavailable`."""
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in THROTTLES:
            raise Throttled("Storage is throttled; send the same ids again later.", cause=code) from error
        raise Unavailable("Storage refused or failed the call.", cause=code) from error
    except BotoCoreError as error:
        raise Unavailable("Storage did not answer.", cause=type(error).__name__) from error


def condition_failed(error: ClientError) -> bool:
    """A conditional write met another state than it expected: an answer, not a failure."""
    return error.response.get("Error", {}).get("Code") == "ConditionalCheckFailedException"


def applied(write: Callable[[], Any]) -> bool:
    """Do a conditional write; False when its condition did not hold."""
    with translated():
        try:
            write()
        except ClientError as error:
            if not condition_failed(error):
                raise
            return False
    return True
