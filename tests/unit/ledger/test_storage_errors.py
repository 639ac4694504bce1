"""Storage on a bad day: throttling is 429, never 500; an unknown outcome is 503; nothing half-known is committed."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from millrace.ledger.adapters.dynamodb.claims import DynamoClaims
from millrace.ledger.adapters.dynamodb.log import DynamoLog
from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryState, in_turn
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.canonical import digest
from millrace.ledger.domain.errors import Contention, MillraceError, Throttled, Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Origin, Page, Record
from millrace.ledger.ports import Claimed

LEDGER = Ledger.of("sync", "default", "demo")
DRAFTS = [Draft(f"e{n}", digest(b"x"), b"{}") for n in range(3)]


class Client:
    """A DynamoDB client that answers every call with one thing."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __getattr__(self, name: str) -> Any:
        def call(**_request: Any) -> Any:
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

        return call


def client_error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "hunter2"}}, "Anything")


@pytest.mark.parametrize(
    ("error", "becomes", "status"),
    [
        (client_error("ProvisionedThroughputExceededException"), Throttled, 429),
        (client_error("ThrottlingException"), Throttled, 429),
        (client_error("RequestLimitExceeded"), Throttled, 429),
        (client_error("InternalServerError"), Unavailable, 503),
        (client_error("AccessDeniedException"), Unavailable, 503),
        (ConnectTimeoutError(endpoint_url="http://x"), Unavailable, 503),
    ],
)
def test_foreign_errors_become_ours_at_the_border(error: Exception, becomes: type[MillraceError], status: int) -> None:
    log = DynamoLog(Client(error), "log", in_turn)  # type: ignore[arg-type]
    for call in (lambda: log.read(LEDGER, 0), lambda: log.append(LEDGER, Page(1, (), 0, Origin("c"), b"n"))):
        with pytest.raises(becomes) as caught:
            call()
        assert caught.value.status == status
        assert "hunter2" not in str(caught.value)


def test_only_duplicate_item_means_claimed_before() -> None:
    responses = [
        {"TableName": "claims"},
        {"Error": {"Code": "DuplicateItem", "Message": ""}},
        {"Error": {"Code": "ProvisionedThroughputExceeded", "Message": ""}},
    ]
    claims = DynamoClaims(Client({"Responses": responses}), "claims", in_turn)  # type: ignore[arg-type]
    claimed = claims.create(LEDGER, ["e0", "e1", "e2"], 0)
    assert claimed == Claimed(frozenset({"e0"}), frozenset({"e1"}), frozenset({"e2"}))


def test_a_claim_call_that_failed_leaves_every_id_unknown() -> None:
    claims = DynamoClaims(Client(client_error("InternalServerError")), "claims", in_turn)  # type: ignore[arg-type]
    for ids in (["e0"], ["e0", "e1"]):
        assert claims.create(LEDGER, ids, 0).failed == set(ids)


def commit(claims: Any, log: Any) -> Commit:
    return Commit(claims, log, MemoryState(), Heads(lambda: 0), in_turn, lambda: 0, lambda: b"n", lambda attempt: None)


def test_claims_that_stay_throttled_are_429_and_commit_nothing() -> None:
    class Throttling(MemoryClaims):
        def create(self, ledger: Ledger, ids: Any, seen: int) -> Claimed:
            answer = super().create(ledger, [id_ for id_ in ids if id_ != "e2"], seen)
            return Claimed(answer.created, answer.existed, frozenset({"e2"}))

    log = MemoryLog()
    with pytest.raises(Throttled):
        commit(Throttling(), log)(LEDGER, DRAFTS, Origin("c"))
    assert log.pages == {}


def test_a_writer_that_always_loses_gives_up_with_503() -> None:
    class Crowded(MemoryLog):
        def append(self, ledger: Ledger, page: Page) -> Page | None:
            """A rival is always there first."""
            rival = Page(page.first, (Record(f"rival-{page.first}", digest(b"r"), b"{}"),), 0, Origin("rival"), b"r")
            super().append(ledger, rival)
            return rival

    with pytest.raises(Contention) as caught:
        commit(MemoryClaims(), Crowded())(LEDGER, DRAFTS, Origin("c"))
    assert (caught.value.status, caught.value.code) == (503, "server_error")
