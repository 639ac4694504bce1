"""The handlers of delivery on events as AWS sends them, with tables and queues on moto."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from typing import Any

import boto3
import pytest

from infra.openapi.delivery_models import AttemptsModel, DeliveryStatusModel, ReplayedRange
from millrace.delivery import wiring
from millrace.delivery.domain.drains import DrainLease, WaitingTarget
from millrace.delivery.domain.rows import Cut
from millrace.delivery.domain.states import Status
from millrace.delivery.domain.targets import Target
from millrace.delivery.doors.bodies import MOST_SENT, MOST_UNPACKED
from millrace.ledger import wiring as core
from millrace.ledger.domain.access import Identity
from millrace.runtime import bearer, settings
from tests.support.translated import monitoring
from tests.unit.runtime.test_handlers import aws, changed, invoke, query, sample

__all__ = ["aws"]

ROLES = frozenset({"producer", "consumer", "operator"})
OPERATOR = Identity("C1", "default", frozenset({"demo"}), ("*",), ROLES, "default", 10**15)


class Trusting:
    def verify(self, _token: str) -> Identity:
        return OPERATOR


@pytest.fixture(autouse=True)
def operator(aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = boto3.client("secretsmanager", region_name="us-east-1").create_secret(Name="d", SecretString="5ecret")
    monkeypatch.setenv("DELIVERY_SECRET_ARN", secret["ARN"])
    monkeypatch.setattr(bearer, "tokens", Trusting)


def answer(name: str, event: dict[str, Any], status: int = 200) -> Any:
    answered = invoke(name, event)
    assert answered["statusCode"] == status, answered["body"]
    return json.loads(answered["body"])


def woken(queue: str = "DELIVER") -> list[dict[str, Any]]:
    sqs = boto3.client("sqs", region_name="us-east-1")
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    for message in received:
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return [json.loads(message["Body"]) for message in received]


def message(wake: dict[str, Any]) -> dict[str, Any]:
    event = sample("deliver")
    event["Records"][0]["body"] = json.dumps(wake)
    return event


def deliver(event: dict[str, Any]) -> None:
    """Nobody has tried the target yet, so its wake-up is passed on."""
    assert invoke("deliver", event) is None
    [passed_on] = woken("SLOW")
    assert passed_on["slow"] is True
    assert invoke("deliver", message(passed_on)) is None


def stream_of(ledger: str) -> dict[str, Any]:
    event = sample("stream")
    event["Records"][0]["dynamodb"]["Keys"]["b"]["S"] = f"{ledger}#0"
    return event


def test_from_a_batch_to_a_target() -> None:
    told = answer("targets", sample("target_put"))
    assert (told["target_id"], told["type"]) == ("archive-hub", "stub")
    assert woken() == [{"tenant": "default", "target_id": "archive-hub", "ledgers": [], "scan": True}]
    assert answer("ingest", sample("ingest"))["results"] == [{"event_id": "build-17-done", "status": "success"}]
    assert answer("ingest", sample("ingest"))["results"] == [{"event_id": "build-17-done", "status": "duplicate"}]
    invoke("fan_out", stream_of("delivery#default#default"))
    [wake] = woken()
    assert json.dumps(wake, separators=(",", ":")) == sample("deliver")["Records"][0]["body"]
    deliver(sample("deliver"))
    [delivery] = answer("targets", sample("deliveries"))["deliveries"]
    assert (delivery["event_id"], delivery["event_type"], delivery["status"]) == (
        "build-17-done",
        "build.done",
        "success",
    )
    assert answer("targets", sample("delivery_retry"), 409)["code"] == "conflict"
    status = answer("targets", sample("delivery_status"))
    assert (status["ok"], status["delivery_ledger"]["current_target_delivered_count"]) == (True, 1)


def test_status_has_every_section_beside_the_old_fields() -> None:
    """D11"""
    answer("targets", sample("target_put"))
    answer("ingest", sample("ingest"))
    deliver(sample("deliver"))
    status = answer("targets", sample("delivery_status"))
    DeliveryStatusModel.model_validate(status)
    assert status.keys() >= {
        "target_authority",
        "event_journal",
        "delivery_targets",
        "delivery_ledger",
        "migration_conflicts",
        "terminal_failures",
        "body_upload_compatibility",
    }
    assert status.keys() >= {"ok", "exit_code", "auth_required", "auth_present", "active_queue", "legacy_queue"}
    assert status["event_journal"]["retained_event_count"] == 1
    assert status["delivery_ledger"]["current_target_delivered_count"] == 1
    answer("targets", sample("target_delete"))
    ledger = answer("targets", sample("delivery_status"))["delivery_ledger"]
    assert (ledger["current_target_delivered_count"], ledger["previous_target_delivered_count"]) == (0, 1)


def test_attempts_counts_and_a_bulk_retry_of_what_was_given_up() -> None:
    """D4, D11"""
    answer("targets", sample("target_put"))
    answer("ingest", sample("ingest"))
    answer("targets", sample("delivery_attempts"), 404)
    deliver(sample("deliver"))
    shown = answer("targets", sample("delivery_attempts"))
    AttemptsModel.model_validate(shown)
    assert (shown["event_id"], [one["status"] for one in shown["history"]]) == ("build-17-done", ["success"])
    [listed] = answer("targets", query("target_list", counts="true"))["targets"]
    assert (listed["deliveries"]["terminal_failed"], listed["counts_complete"]) == (0, True)
    found = wiring.deliveries()
    [delivered] = found.find("default#archive-hub", None)
    failed = replace(delivered.delivery, status=Status.TERMINAL_FAILED, error="answered 500")
    row = wiring.runs().overlapping("default#archive-hub", delivered.ledger, 1, 1)[0]
    cut = Cut(row, [replace(row.run, delivery=failed)])
    wiring.runs().point("default#archive-hub", delivered.ledger, cut.runs, core.now_ms())
    assert wiring.runs().cut("default#archive-hub", delivered.ledger, cut, 0)
    [listed] = answer("targets", query("target_list", counts="true"))["targets"]
    assert listed["deliveries"]["terminal_failed"] == 1
    woken()
    body = {"status": "terminal_failed", "families": ["build."]}
    dry = answer("targets", changed(sample("target_retry"), {**body, "dry_run": True}))
    assert (dry["matched"], dry["retried"], woken()) == (1, 0, [])
    done = answer("targets", changed(sample("target_retry"), body))
    assert (done["matched"], done["retried"], done["next"], len(woken())) == (1, 1, None, 1)
    assert answer("targets", changed(sample("target_retry"), body))["matched"] == 0


def test_a_range_is_replayed_even_if_it_was_delivered() -> None:
    """D4, D6"""
    answer("targets", sample("target_put"))
    answer("ingest", sample("ingest"))
    deliver(sample("deliver"))
    woken()
    asked = json.loads(sample("target_replay")["body"])
    dry = answer("targets", changed(sample("target_replay"), {**asked, "dry_run": True}))
    assert (dry["matched"], dry["replayed"], dry["delivered_before"], woken()) == (1, 0, 1, [])
    done = answer("targets", sample("target_replay"))
    ReplayedRange.model_validate(done)
    assert (done["replayed"], done["next"], len(woken())) == (1, None, 1)
    shown = answer("targets", sample("delivery_attempts"))
    assert (shown["status"], shown["delivered_before_ms"]) == ("pending", shown["last_ms"])
    assert [one["status"] for one in shown["history"]] == ["success"]
    AttemptsModel.model_validate(shown)


RANGE = {"contract": "delivery", "scope": "default", "from_position": 1, "to_position": 2}
BAD_REPLAYS: tuple[tuple[Any, str], ...] = (
    ([], "body"),
    ({}, "contract"),
    ({**RANGE, "contract": "nothing"}, "contract"),
    ({**RANGE, "scope": "def*"}, "scope"),
    ({**RANGE, "scope": "another"}, "scope"),
    ({**RANGE, "from_position": 0}, "from_position"),
    ({**RANGE, "from_position": True}, "from_position"),
    ({**RANGE, "from_position": 3}, "to_position"),
    ({**RANGE, "to_position": 2**53}, "to_position"),
    ({**RANGE, "until_ms": -1}, "until_ms"),
    ({**RANGE, "x": 1}, "x"),
)


@pytest.mark.parametrize(("body", "field"), BAD_REPLAYS)
def test_a_replay_that_breaks_a_rule_is_told_which_field(body: Any, field: str) -> None:
    answer("targets", sample("target_put"))
    refused = answer("targets", changed(sample("target_replay"), body), 400)
    assert refused["details"]["field"] == field


BAD_RETRIES: tuple[tuple[Any, str], ...] = (
    ([], "body"),
    ({}, "status"),
    ({"status": "success"}, "status"),
    ({"status": "rejected", "x": 1}, "x"),
    ({"status": "rejected", "since_ms": True}, "since_ms"),
    ({"status": "rejected", "until_ms": -1}, "until_ms"),
    ({"status": "rejected", "families": [7]}, "families"),
    ({"status": "rejected", "after": "nowhere"}, "after"),
)


@pytest.mark.parametrize(("body", "field"), BAD_RETRIES)
def test_a_bulk_retry_that_breaks_a_rule_is_told_which_field(body: Any, field: str) -> None:
    answer("targets", sample("target_put"))
    refused = answer("targets", changed(sample("target_retry"), body), 400)
    assert refused["details"]["field"].startswith(field)


def test_a_target_is_paused_and_resumed_and_keeps_everything_else() -> None:
    made = answer("targets", sample("target_put"))
    paused = answer("targets", sample("target_pause"))
    assert (paused["paused"], paused["paused_why"], paused["sources"]) == (True, "by an operator", made["sources"])
    woken()
    assert answer("targets", sample("target_resume"))["paused"] is False
    assert [wake["scan"] for wake in woken()] == [True]


def test_a_target_is_seen_listed_drained_and_deleted() -> None:
    answer("targets", sample("target_get"), 404)
    made = answer("targets", sample("target_put"))
    assert answer("targets", sample("target_get")) == made
    assert answer("targets", sample("target_list")) == {"targets": [made]}
    assert answer("targets", sample("target_patch")) == {**made, "revision": 2}
    woken()
    assert answer("targets", sample("target_drain")) == {"asked": True}
    assert [wake["scan"] for wake in woken()] == [True]
    assert answer("targets", sample("target_delete")) == {"deleted": True}
    assert answer("targets", sample("target_delete")) == {"deleted": False}


def test_a_scan_finds_what_was_there_before_the_target() -> None:
    answer("ingest", sample("ingest"))
    answer("targets", sample("target_put"))
    [wake] = woken()
    event = sample("deliver")
    event["Records"][0]["body"] = json.dumps(wake)
    deliver(event)
    assert len(answer("targets", sample("deliveries"))["deliveries"]) == 1


def test_a_reminder_and_a_sweep_find_what_is_due() -> None:
    answer("targets", sample("target_put"))
    answer("ingest", sample("ingest"))
    woken()
    assert invoke("remind", sample("remind")) == {"wakes": 0}
    assert invoke("sweep", sample("sweep"))["wakes"] == 0, "it is not late yet"
    kept = wiring.directory().get("default", "archive-hub")
    assert kept is not None
    wiring.agenda().note(kept.target.target(), ["delivery#default#default"])
    assert invoke("remind", sample("remind")) == {"wakes": 1}
    assert woken() == [{"tenant": "default", "target_id": "archive-hub", "ledgers": [], "scan": False}]


def test_a_drain_that_storage_fails_is_not_given_back_to_the_queue_but_counted_for_its_alarm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer("targets", sample("target_put"))
    monkeypatch.setenv("LOG_TABLE", "gone")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "deliver")
    core.log.cache_clear()
    capsys.readouterr()
    deliver(sample("deliver"))
    (told,) = [one for one in map(json.loads, capsys.readouterr().out.splitlines()) if "_aws" in one]
    alarm = monitoring()["Resources"]["DrainFailed"]["Properties"]
    (metrics,) = told["_aws"]["CloudWatchMetrics"]
    assert metrics["Metrics"][0]["Name"] == alarm["MetricName"]
    watched = {dimension["Name"]: dimension["Value"] for dimension in alarm["Dimensions"]}
    assert {name: told[name] for name in metrics["Dimensions"][0]} == watched


def test_a_wake_up_for_a_target_that_is_gone_does_nothing() -> None:
    assert invoke("deliver", sample("deliver")) is None


def compressed(content: bytes, kind: str = "application/json") -> dict[str, Any]:
    event = sample("ingest")
    event["headers"] |= {"content-type": kind, "content-encoding": "gzip"}
    return {**event, "body": base64.b64encode(content).decode(), "isBase64Encoded": True}


@pytest.mark.parametrize("kind", ["application/json", "application/gzip", "application/octet-stream"])
def test_a_compressed_batch_is_taken_whatever_the_gateway_calls_it(kind: str) -> None:
    """D8"""
    plain = sample("ingest")["body"].encode()
    assert answer("ingest", compressed(gzip.compress(plain), kind))["results"][0]["status"] == "success"


@pytest.mark.parametrize(
    ("status", "event"),
    [
        (413, compressed(gzip.compress(b" " * (MOST_UNPACKED + 1)))),
        (413, compressed(b"\x1f\x8b" + b" " * MOST_SENT)),
        (400, compressed(b"nonsense")),
        (400, compressed(gzip.compress(b"{}")[:-1])),
        (400, compressed(gzip.compress(b"{}") + b"x")),
        (400, compressed(gzip.compress(b"{}"), "text/plain")),
        (400, compressed(gzip.compress(b'{"events": [{"event_id": "a", "event_id": "b"}]}'))),
        (415, {**compressed(b""), "isBase64Encoded": False, "body": "\x1f\ufffd"}),
        (415, {**sample("ingest"), "headers": {**sample("ingest")["headers"], "content-encoding": "br"}}),
        (404, {**sample("ingest"), "pathParameters": {"proxy": "batches"}}),
    ],
)
def test_a_body_that_cannot_be_taken_is_refused(status: int, event: dict[str, Any]) -> None:
    """D8: size is looked at before unpacking and while."""
    assert answer("ingest", event, status)["code"] in ("bad_request", "too_large", "not_found")


@pytest.mark.parametrize(
    ("emulated", "said", "allowed"),
    [("yes", "yes", True), ("", "yes", False), ("yes", "no", False), ("yes", "", False)],
)
def test_loopback_wants_an_emulator_that_says_so(
    monkeypatch: pytest.MonkeyPatch, emulated: str, said: str, allowed: bool
) -> None:
    """D12"""
    monkeypatch.setenv("MILLRACE_LOOPBACK_TARGETS", said)
    if emulated:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:4566")
    else:
        monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    assert settings.loopback_targets() is allowed


def test_status_shows_who_drains_since_when_and_who_died() -> None:
    """D11"""
    answer("targets", sample("target_put"))
    now_ms = core.now_ms()
    drain = DrainLease("default", "archive-hub", "me", now_ms - 5_000, now_ms + 60_000, slow=True)
    wiring.drains().take(drain, now_ms)
    status = answer("targets", sample("delivery_status"))
    [shown] = status["delivery_targets"]
    assert (status["ok"], shown["has_due"], shown["stuck"], shown["quick"]) == (True, True, None, False)
    assert shown["drain"] == {"holder": "me", "since_ms": drain.since_ms, "until_ms": drain.until_ms}
    wiring.drains().renew(replace(drain, until_ms=now_ms - 1))
    wiring.line().wait(WaitingTarget("default", "archive-hub", 7))
    wiring.agenda().note(Target("default#archive-hub", ""), ["delivery#default#default"])
    status = answer("targets", sample("delivery_status"))
    [shown] = status["delivery_targets"]
    assert (status["ok"], shown["has_due"], shown["stuck"], shown["waits_since_ms"]) == (False, True, "drain_died", 7)
    assert shown["due"] == [{"contract": "delivery", "scope": "default"}]
