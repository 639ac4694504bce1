"""D8: what each answer of a target means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millrace.delivery.domain.outcomes import Response, Verdict, judge, judge_webhook
from millrace.delivery.domain.retry import Schedule
from millrace.delivery.domain.states import Status, settle


def ok(*results: Any) -> Response:
    return Response(200, json.dumps({"results": results}).encode())


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("success", Status.SUCCESS),
        ("accepted", Status.SUCCESS),
        ("warning", Status.SUCCESS),
        ("duplicate", Status.DUPLICATE),
        ("pending", Status.PENDING),
        ("queued", Status.PENDING),
        ("rejected", Status.REJECTED),
        ("terminal_failed", Status.TERMINAL_FAILED),
        ("terminal-failed", Status.TERMINAL_FAILED),
        ("terminal failed", Status.TRANSIENT),
        ("SUCCESS", Status.TRANSIENT),
        ("", Status.TRANSIENT),
        (None, Status.TRANSIENT),
        (1, Status.TRANSIENT),
        (["success"], Status.TRANSIENT),
    ],
)
def test_each_word_of_the_batch_api_has_one_meaning(word: Any, status: Status) -> None:
    answer = judge(ok({"event_id": "a", "status": word}), ["a"], 0)
    assert answer.verdict is Verdict.RESULTS
    assert answer.results["a"].status is status


def test_results_are_matched_by_id_and_what_is_missing_or_unknown_is_transient() -> None:
    answer = judge(
        ok(
            {"event_id": "stranger", "status": "rejected"},
            {"event_id": "b", "status": "success"},
            "nonsense",
            {"status": "success"},
            {"event_id": ["a"], "status": "success"},
        ),
        ["a", "b"],
        0,
    )
    assert {id_: outcome.status for id_, outcome in answer.results.items()} == {
        "a": Status.TRANSIENT,
        "b": Status.SUCCESS,
    }


def test_an_event_that_is_answered_in_two_ways_has_no_answer() -> None:
    twice = judge(ok({"event_id": "a", "status": "success"}, {"event_id": "a", "status": "rejected"}), ["a"], 0)
    assert twice.results["a"].status is Status.TRANSIENT
    same = judge(ok({"event_id": "a", "status": "success"}, {"event_id": "a", "status": "accepted"}), ["a"], 0)
    assert same.results["a"].status is Status.SUCCESS


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b'{"results": {}}',
        b'{"results": 1}',
        b"{}",
        b'{"results":[}',
        b"\xff",
        b"[" * 99,
    ],
)
def test_a_200_that_cannot_be_read_holds_the_batch(body: bytes) -> None:
    answer = judge(Response(200, body), ["a"], 0)
    assert (answer.verdict, answer.outcome.status) == (Verdict.HELD, Status.TRANSIENT)


@pytest.mark.parametrize(
    "status", [100, 199, 301, 302, 307, 308, 401, 403, 404, 405, 408, 409, 412, 418, 422, 429, 500, 502, 503, 504, 599]
)
def test_any_other_status_is_transient(status: int) -> None:
    for judged_by in (judge, judge_webhook):
        answer = judged_by(Response(status, b'{"results":[{"event_id":"a","status":"success"}]}'), ["a"], 0)
        assert (answer.verdict, answer.outcome.status) == (Verdict.HELD, Status.TRANSIENT)
        assert str(status) in answer.outcome.error


@pytest.mark.parametrize(
    ("header", "ms"),
    [
        ("7", 7_000),
        (" 0 ", 0),
        ("Thu, 01 Jan 1970 00:01:00 GMT", 50_000),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0),
        ("9" * 400, 86_400_000),
        ("-5", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_read_in_both_forms_and_bounded(header: str | None, ms: int | None) -> None:
    answer = judge(Response(429, b"", header), ["a"], 10_000)
    assert answer.outcome.retry_after_ms == ms


@pytest.mark.parametrize(
    "body",
    [
        {"results": [{"event_id": "b", "status": "rejected", "error": "no"}]},
        {"errors": [{"event_id": "b", "error": "no"}]},
        {"details": [{"event_id": "b", "message": "no"}]},
        {"details": {"errors": [{"event_id": "b", "error": {"message": "no"}}]}},
    ],
)
def test_a_400_that_names_events_rejects_those(body: Any) -> None:
    answer = judge(Response(400, json.dumps(body).encode()), ["a", "b"], 0)
    assert answer.verdict is Verdict.PARTLY
    assert {id_: (outcome.status, outcome.error) for id_, outcome in answer.results.items()} == {
        "b": (Status.REJECTED, "no")
    }


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"errors":[]}', b'{"errors":[{"event_id":"stranger"}]}', b'{"details":{}}']
)
def test_a_400_that_names_none_splits_the_batch(body: bytes) -> None:
    answer = judge(Response(400, body), ["a", "b"], 0)
    assert (answer.verdict, answer.outcome.status) == (Verdict.SPLIT, Status.REJECTED)


def test_413_splits_and_alone_is_terminal_and_410_is_gone() -> None:
    for judged_by in (judge, judge_webhook):
        large = judged_by(Response(413), ["a"], 0)
        assert (large.verdict, large.outcome.status) == (Verdict.SPLIT, Status.TERMINAL_FAILED)
        assert judged_by(Response(410), ["a"], 0).verdict is Verdict.GONE


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_a_webhook_is_content_with_any_2xx(status: int) -> None:
    assert judge_webhook(Response(status, b"whatever"), ["a"], 0).results["a"].status is Status.SUCCESS


@pytest.mark.parametrize("name", ["error", "error_message", "reason", "message"])
def test_a_targets_reason_is_read_wherever_it_says_it(name: str) -> None:
    """D8"""
    told = judge(ok({"event_id": "a", "status": "rejected", "error": None, name: "no such order"}), ["a"], 0)
    assert told.results["a"].error == "no such order"
    listed = [{"event_id": "a", name: "no such order"}]
    for details in (listed, json.dumps(listed)):
        answer = judge(Response(400, json.dumps({"error": "bad", "details": details}).encode()), ["a", "b"], 0)
        assert (answer.verdict, answer.results["a"].status) == (Verdict.PARTLY, Status.REJECTED)
        assert answer.results["a"].error == "no such order"


@pytest.mark.parametrize("status", [400, 401, 403, 422, 503])
@pytest.mark.parametrize("name", ["error", "error_message", "message"])
def test_the_reason_of_a_refusal_as_a_whole_is_kept_too(status: int, name: str) -> None:
    """D8: whoever looks at the delivery sees why, whether the target named an event or not."""
    for judged_by in (judge, judge_webhook):
        answer = judged_by(Response(status, json.dumps({name: "the token\nis for another team"}).encode()), ["a"], 0)
        assert answer.outcome.error == f"answered {status}: the token is for another team"
        for body in (b"", b"<html>no</html>", b"[]", b"{}", b'{"error": 5}', b'{"error": ""}'):
            assert judged_by(Response(status, body), ["a"], 0).outcome.error == f"answered {status}"


def test_what_is_terminal_for_the_target_is_so_at_once_and_holds_up_nothing() -> None:
    """D8"""
    outcome = judge(ok({"event_id": "a", "status": "terminal_failed", "error": "never"}), ["a"], 0).results["a"]
    after = settle(None, outcome, 5, Schedule(), 0.5)
    assert (after.status, after.attempts, after.next_ms, after.error) == (Status.TERMINAL_FAILED, 1, None, "never")


def test_a_targets_words_are_made_safe_to_show() -> None:
    answer = judge(ok({"event_id": "a", "status": "rejected", "error": "x\x1b[31m\n" + "y" * 1000}), ["a"], 0)
    error = answer.results["a"].error
    assert error.isprintable()
    assert len(error) == 300
