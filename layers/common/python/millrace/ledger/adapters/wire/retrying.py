"""Which calls to AWS are made again, and when: the rules of the SDKs' standard mode, and their quota."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from millrace.ledger.adapters.wire.failures import AwsRefused, AwsUnanswered

TRANSIENT = frozenset({"RequestTimeout", "RequestTimeoutException", "PriorRequestNotComplete"})
TRANSIENT_STATUS = frozenset({500, 502, 503, 504})
THROTTLED = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottledException",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "TransactionInProgressException",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "RequestThrottled",
        "SlowDown",
        "EC2ThrottledException",
    }
)
MODELED = frozenset({"ReplicatedWriteConflictException"})
"""What AWS's descriptions of our operations call retryable beside those."""
FINAL = frozenset({"NoCredentialsError", "CredentialRetrievalError", "MetadataRetrievalError", "ResponseParserError"})
"""Failures that the same call would meet again."""
TIMEOUTS = frozenset({"ConnectTimeoutError", "ReadTimeoutError"})
QUOTA, COST, TIMEOUT_COST = 500, 5, 10
MOST_SECONDS = 20.0


@dataclass(slots=True)
class Retries:
    """One for a client. If much of what it asks fails, the quota is used up, and calls are no longer repeated."""

    attempts: int
    """In all: the first one counts."""
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = field(default_factory=lambda: random.SystemRandom().random)
    """System randomness: a restored snapshot must not repeat itself."""
    _left: int = QUOTA
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def again(self, failure: AwsRefused | AwsUnanswered, attempt: int) -> int:
        """Sleeps and returns what the retry cost, if the call is to be made again; else 0."""
        if attempt >= self.attempts or not is_retryable(failure):
            return 0
        cost = TIMEOUT_COST if isinstance(failure, AwsUnanswered) and failure.kind in TIMEOUTS else COST
        with self._lock:
            if cost > self._left:
                return 0
            self._left -= cost
        self.sleep(self.random() * min(2 ** (attempt - 1), MOST_SECONDS))
        return cost

    def succeeded(self, cost: int) -> None:
        """Gives back what the last retry cost, or a little if there was none."""
        if self._left < QUOTA:
            with self._lock:
                self._left = min(QUOTA, self._left + (cost or 1))


def is_retryable(failure: AwsRefused | AwsUnanswered) -> bool:
    if isinstance(failure, AwsUnanswered):
        return failure.kind not in FINAL
    status = failure.response["ResponseMetadata"]["HTTPStatusCode"]
    return status in TRANSIENT_STATUS or failure.code in TRANSIENT | THROTTLED | MODELED
