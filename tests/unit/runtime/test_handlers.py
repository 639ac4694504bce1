"""Each handler on an event as AWS sends it (tests/events, also for `sam local invoke`), with tables on moto."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import pytest
from aws_lambda_powertools.logging import Logger
from moto import mock_aws

from millrace.delivery import wiring as delivery_wiring
from millrace.lake import wiring as lake_wiring
from millrace.lake.domain.archive import read_lines
from millrace.ledger import wiring as core
from millrace.ledger.adapters.doorbell import rung_for
from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.domain import names
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.names import Ledger, stream_ledger
from millrace.ledger.domain.page import Draft
from millrace.live import wiring as live_wiring
from millrace.live.adapters.memory import MemoryWire
from millrace.live.ports import Connection, Subscription
from millrace.realtime import wiring as realtime_wiring
from millrace.runtime import bearer, clients, observe
from millrace.streams import wiring as streams_wiring
from millrace.streams.application.markers import marker_group
from millrace.streams.ports import Announcement, Intent, VersionedRow
from millrace.sync import wiring as sync_wiring
from tests.support.aws_tables import client_for, create_tables

ROOT = Path(__file__).parents[3]
ROLES = frozenset({"producer", "consumer", "operator"})
EVERYONE = Identity("C1", "default", frozenset({"demo"}), ("*",), ROLES, "default", 10**15)
CANARY = "canary-h"


class Context:
    aws_request_id = "request-1"
    function_name = "function"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn"

    def get_remaining_time_in_millis(self) -> int:
        return 300_000


def sample(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ROOT / "tests/events" / f"{name}.json").read_text())
    return loaded


def function(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"function_{name}", ROOT / "functions" / name / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def invoke(name: str, event: dict[str, Any]) -> Any:
    return function(name).handler(event, Context())


def answer(name: str, event: dict[str, Any], status: int = 200) -> Any:
    """The body of an HTTP answer with this status."""
    answered = invoke(name, event)
    assert answered["statusCode"] == status, answered["body"]
    return json.loads(answered["body"])


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with deployment(monkeypatch):
        yield


@contextmanager
def deployment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables, queues and settings of a deployment, and a token that is taken for what it says."""
    with mock_aws():
        forget_wiring()
        for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
            monkeypatch.setenv(name, "us-east-1")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", session())
        monkeypatch.setenv("WIRE", "boto3")  # the only one that moto stands in for
        tables = create_tables(client_for(None))
        for name in ("claims", "log", "state", "index", "connections", "diagnostics", "waiting"):
            monkeypatch.setenv(f"{name.upper()}_TABLE", getattr(tables, name))
        sqs = boto3.client("sqs", region_name="us-east-1")
        for queue in ("INDEX", "WAKE", "ARCHIVE", "DEADLINE", "SNAPSHOT"):
            monkeypatch.setenv(f"{queue}_QUEUE_URL", sqs.create_queue(QueueName=queue)["QueueUrl"])
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="archive")
        monkeypatch.setenv("ARCHIVE_BUCKET", "archive")
        secret = boto3.client("secretsmanager", region_name="us-east-1").create_secret(Name="s", SecretString="5ecret")
        monkeypatch.setenv("STREAM_SECRET_ARN", secret["ARN"])
        monkeypatch.setenv("SOCKET_API_ID", "def456")
        monkeypatch.setenv("SOCKET_STAGE", "live")
        monkeypatch.setenv("CROWD_FUNCTION", "crowd")
        monkeypatch.setenv("DELIVERY_TABLE", tables.delivery)
        monkeypatch.setenv("DELIVER_QUEUE_URL", sqs.create_queue(QueueName="DELIVER")["QueueUrl"])
        monkeypatch.setenv("SLOW_QUEUE_URL", sqs.create_queue(QueueName="SLOW")["QueueUrl"])
        monkeypatch.setattr(bearer, "tokens", Trusting)
        monkeypatch.setattr(live_wiring, "side_by_side", lambda: in_turn)  # moto loses what threads write at once
        yield
        forget_wiring()


@cache
def session() -> boto3.Session:
    """One for all deployments: moto forgets the default one each time, and a new one reads AWS's descriptions again."""
    return boto3.Session()


class Trusting:
    def verify(self, _token: str) -> Identity:
        return EVERYONE


def forget_wiring() -> None:
    modules = (bearer, core, delivery_wiring, lake_wiring, live_wiring, realtime_wiring, streams_wiring, sync_wiring)
    for made in (
        clients.dynamodb_client,
        clients.lambda_client,
        clients.secrets_client,
        *(made for module in modules for made in vars(module).values()),
    ):
        if hasattr(made, "cache_clear"):
            made.cache_clear()


def rings(queue: str) -> list[str]:
    sqs = boto3.client("sqs", region_name="us-east-1")
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    return [rung_for(message["Body"]).name for message in received]


def test_submit_then_sync() -> None:
    submitted = invoke("submit", sample("submit"))
    assert submitted["statusCode"] == 200
    assert json.loads(submitted["body"])["results"][0]["committed_id"] == 1
    page = json.loads(invoke("sync", sample("sync"))["body"])
    assert [event["id"] for event in page["events"]] == ["order-17-paid"]


def test_health() -> None:
    assert json.loads(invoke("meta", sample("health"))["body"])["status"] == "ok"


def test_health_says_where_the_websocket_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """D1: a client is given one address."""

    def told() -> str:
        return str(json.loads(invoke("meta", sample("health"))["body"])["websocket_url"])

    assert told() == "wss://def456.execute-api.us-east-1.amazonaws.com/live"
    monkeypatch.setenv("AWS_REGION", "cn-north-1")
    assert told() == "wss://def456.execute-api.cn-north-1.amazonaws.com.cn/live"
    monkeypatch.setenv("AWS_REGION", "eusc-de-east-1")
    assert told() == "wss://def456.execute-api.eusc-de-east-1.amazonaws.eu/live"
    monkeypatch.setenv("SOCKET_DOMAIN", "live.example.com")
    assert told() == "wss://live.example.com"
    monkeypatch.setenv("SOCKET_DOMAIN", "")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    assert told() == "ws://127.0.0.1:4566/_aws/execute-api/def456/live"


def test_publish_then_replay() -> None:
    assert json.loads(invoke("publish", sample("publish"))["body"])["event"]["sequence"] == 1
    page = json.loads(invoke("replay", sample("replay"))["body"])
    assert [event["eventId"] for event in page["events"]] == ["evt-1"]


def test_the_stream_rings_the_index_which_then_follows_the_log() -> None:
    invoke("submit", sample("submit"))
    invoke("fan_out", sample("stream"))
    assert rings("INDEX") == ["sync#default#demo"]
    assert invoke("index", sample("index")) == {"batchItemFailures": []}
    marks = core.state().marks(Ledger.to_read("sync#default#demo"))
    assert marks.cursors == {"fan_out": 1, "index": 1}


def test_a_ring_for_a_session_extends_its_time_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "BUCKET", 1)
    publish, ring = sample("publish"), sample("index")
    assert invoke("publish", publish)["statusCode"] == 200
    session = json.loads(publish["body"])["sessionId"]
    ring["Records"][0]["body"] = json.dumps(f"realtime#default#{session}")
    assert invoke("index", ring) == {"batchItemFailures": []}
    note = realtime_wiring.time_index().note(Ledger.to_read(f"realtime#default#{session}"))
    assert note is not None
    assert note.bucket == 0


def archived() -> list[dict[str, Any]]:
    names = [listed.name for listed in lake_wiring.objects().list("ledger/")]
    found = [lake_wiring.objects().get(name) for name in names]
    return [line for one in found if one is not None for line in read_lines(one.data)]


@pytest.mark.parametrize("doorbell", [sample("stream"), sample("archive")], ids=["stream", "queue"])
def test_the_archive_hears_of_a_ledger_and_puts_its_events(doorbell: dict[str, Any]) -> None:
    """C1, C3"""
    invoke("submit", sample("submit"))
    invoke("archive", doorbell)
    (line,) = archived()
    assert (line["event_type"], line["idempotency_key"]) == ("sync.order.paid", "order-17-paid")
    invoke("archive", doorbell)
    assert archived() == [line]


def test_the_sweep_rings_the_archive_for_what_its_stream_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """C3: and the archive then does what it should have done."""
    monkeypatch.setattr(core, "UNARCHIVED_MS", 0)
    invoke("submit", sample("submit"))
    invoke("sweep", sample("sweep"))
    (ring,) = rings("ARCHIVE")
    invoke("archive", {"Records": [{"body": ring}]})
    assert [line["idempotency_key"] for line in archived()] == ["order-17-paid"]
    invoke("sweep", sample("sweep"))
    assert rings("ARCHIVE") == []


def test_an_archive_without_time_rings_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    invoke("submit", sample("submit"))
    monkeypatch.setattr(Context, "get_remaining_time_in_millis", lambda _: 1_000)
    invoke("archive", sample("archive"))
    assert archived() == []
    assert rings("ARCHIVE") == ["sync#default#demo"]


def test_a_catalog_event_is_recorded_once() -> None:
    """C1, C2"""
    first = json.loads(invoke("catalog", sample("catalog"))["body"])
    assert (first["sequence_position"], first["deduped"]) == (1, False)
    assert first["idempotency_key"].startswith("auto:")
    again = json.loads(invoke("catalog", sample("catalog"))["body"])
    assert again == {**first, "deduped": True}


def test_retention_is_set_and_read() -> None:
    """C8"""
    assert json.loads(invoke("retention", sample("retention_set"))["body"])["max_age_days"] == 90
    told = json.loads(invoke("retention", sample("retention_read"))["body"])
    assert told == {
        "contract": "catalog",
        "scope": "orders",
        "advance_to": 0,
        "max_age_days": 90,
        "max_events": None,
        "partitions": [],
    }
    (rule,) = json.loads(invoke("retention", sample("retention_list"))["body"])["policies"]
    assert (rule["contract"], rule["max_age_days"]) == (told["contract"], 90)
    assert json.loads(invoke("retention", sample("retention_plan"))["body"])["scope"] == told["scope"]


def test_a_profile_that_an_operator_sets_decides_what_a_project_takes() -> None:
    """S3"""
    (taken,) = json.loads(invoke("submit", sample("submit"))["body"])["results"]
    told = json.loads(invoke("retention", changed(sample("profile_set"), {"profile": "canonical"}))["body"])
    assert told == {"project": "demo", "profile": "canonical", "set_by": "operator"}
    assert json.loads(invoke("retention", sample("profile_read"))["body"]) == told
    (listed,) = json.loads(invoke("retention", sample("profile_list"))["body"])["profiles"]
    assert listed == told
    sync_wiring.submit.cache_clear()  # as another instance, which remembers nothing
    (refused,) = json.loads(invoke("submit", sample("submit"))["body"])["results"]
    assert (taken["status"], refused["status"], refused["errors"][0]["field"]) == (
        "committed",
        "rejected",
        "event.type",
    )
    audited = json.loads(invoke("diagnostics", sample("audit"))["body"])["events"]
    told_of = [(one["action"], one["outcome"], one["project"]) for one in audited if one["action"] == "profile_set"]
    assert told_of == [("profile_set", "begun", "demo"), ("profile_set", "done", "demo")]


def test_ledgers_and_events_are_shown_to_operators() -> None:
    invoke("catalog", sample("catalog"))
    (shown,) = json.loads(invoke("operate", sample("ledger_list"))["body"])["ledgers"]
    assert (shown["contract"], shown["scope"], shown["head"]) == ("catalog", "orders", 1)
    assert json.loads(invoke("operate", sample("ledger_get"))["body"])["head"] == 1
    (event,) = json.loads(invoke("operate", sample("ledger_events"))["body"])["events"]
    assert (event["position"], event["type"]) == (1, "materialization.completed")
    invoke("submit", sample("submit"))
    found = json.loads(invoke("operate", sample("ledger_event"))["body"])
    assert (found["event"]["id"], found["event"]["position"], found["deliveries"]) == ("order-17-paid", 1, [])


def test_operators_steer_quarantine_and_registry_and_see_the_tables() -> None:
    """C5, C7"""
    put = json.loads(invoke("lake", sample("registry_put"))["body"])
    assert put == {"types": 1, "versions": 1, "policy": "quarantine"}
    assert json.loads(invoke("lake", sample("registry_read"))["body"])["registry"]["types"].keys() == {"order.placed"}
    shown = json.loads(invoke("lake", sample("tables"))["body"])
    assert (shown["edition"], shown["waiting"]["objects"]) == (0, 0)
    assert json.loads(invoke("lake", sample("quarantine_list"))["body"])["entries"] == []
    assert json.loads(invoke("lake", sample("quarantine_redrive"))["body"]) == {"redriven": {}, "next": None}
    assert invoke("lake", sample("quarantine_show"))["statusCode"] == 404
    assert invoke("lake", sample("quarantine_repair"))["statusCode"] == 404


def test_operators_see_how_the_hub_stands() -> None:
    invoke("submit", sample("submit"))
    shown = json.loads(invoke("operate", sample("overview"))["body"])
    assert (shown["looked_at"], shown["more"], shown["connections"]) == (1, False, 0)
    assert shown["stages"]["fan_out"]["ledgers_behind"] == 1
    assert [one["events"] for one in shown["events_per_minute"]["minutes"]] == [1]
    listed = json.loads(invoke("operate", sample("connection_list"))["body"])
    assert listed == {"connections": [], "next": None}
    assert json.loads(invoke("operate", sample("degraded_list"))["body"]) == {"degraded": [], "gaps": [], "next": None}
    agreed = answer("emit", sample("negotiate"))
    (told,) = json.loads(invoke("operate", sample("negotiation_list"))["body"])["negotiations"]
    assert told == {"client_id": "C1", "profile": told["profile"], **agreed}


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"contract": "nothing"}, "contract"),
        ({}, "contract"),
        ({"contract": "sync", "max": "0"}, "max"),
        ({"contract": "sync", "limit": "1"}, "limit"),
    ],
)
def test_a_list_of_ledgers_names_what_is_wrong_with_its_request(parameters: dict[str, str], field: str) -> None:
    event = changed(sample("ledger_list"), queryStringParameters=parameters)
    answered = invoke("operate", event)
    assert (answered["statusCode"], json.loads(answered["body"])["details"]["field"]) == (400, field)


def test_events_are_asked_for_by_position_or_by_time_but_not_both() -> None:
    event = changed(sample("ledger_events"), queryStringParameters={"after": "1", "at_ms": "2"})
    assert invoke("operate", event)["statusCode"] == 400


def test_the_sweep_rings_for_what_is_behind() -> None:
    invoke("submit", sample("submit"))
    assert invoke("sweep", sample("sweep")) == {"rings": 1, "wakes": 0, "ledgers": 1}
    assert rings("INDEX") == ["sync#default#demo"]
    assert rings("WAKE") == [], "it is not late yet"


def test_a_socket_is_remembered_until_it_is_gone() -> None:
    assert invoke("socket", sample("socket_connect")) == {"statusCode": 200}
    connection = sample("socket_connect")["requestContext"]["connectionId"]
    assert live_wiring.connections().line_up(connection, "x", 0).connection is not None
    assert invoke("socket", sample("socket_disconnect")) == {"statusCode": 200}
    assert live_wiring.connections().line_up(connection, "x", 0).refused == "gone"


def test_a_message_on_a_socket_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = MemoryWire()
    monkeypatch.setattr(live_wiring, "wire", lambda: wire)
    invoke("socket", sample("socket_connect"))
    assert invoke("socket", sample("socket_message")) == {"statusCode": 200}
    (sent,) = wire.sent[sample("socket_message")["requestContext"]["connectionId"]]
    assert json.loads(sent)["payload"]["code"] == "bad_request", "it has not said connect yet"


class Functions:
    """Lambda, as far as a crew calls it: what was started, by name."""

    def __init__(self) -> None:
        self.started: list[tuple[str, Any]] = []

    def invoke(self, FunctionName: str, InvocationType: str, Payload: bytes) -> None:  # noqa: N803 - boto3's names
        assert InvocationType == "Event", "nobody waits for it"
        self.started.append((FunctionName, json.loads(Payload)))


def test_a_crowd_is_left_to_workers_who_serve_a_shard_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fan-out sends nothing to it, and its cursor stays until the last shard is served."""
    wire, functions = MemoryWire(), Functions()
    monkeypatch.setattr(live_wiring, "wire", lambda: wire)
    monkeypatch.setattr(clients, "lambda_client", lambda: functions)
    monkeypatch.setenv("CROWD_CONNECTIONS", "1")
    invoke("submit", sample("submit"))
    ledger = Ledger.to_read("sync#default#demo")
    for name in ("c1", "c2"):
        late = Subscription(name, "sync", ledger.name, None, "snake", "demo", core.now_ms() + 60_000, 0)
        live_wiring.subscriptions().add(late)
    invoke("fan_out", sample("stream"))
    assert wire.sent == {}
    asked = sample("crowd")
    assert ("crowd", asked) in functions.started, "tests/events/crowd.json is what fan_out asks for"
    assert {tuple(payload) for _, payload in functions.started} == {("shares",)}
    assert sorted(payload["shares"][0]["shard"] for _, payload in functions.started) == list(range(8))
    invoke("crowd", asked)
    assert core.state().marks(ledger).cursors == {}
    for _, payload in functions.started:
        invoke("crowd", payload)
    assert {name: len(sent) for name, sent in wire.sent.items()} == {"c1": 1, "c2": 1}
    assert core.state().marks(ledger).cursors == {"fan_out": 1}


def test_a_socket_that_stays_silent_is_closed_at_its_deadline_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = MemoryWire()
    monkeypatch.setattr(live_wiring, "wire", lambda: wire)
    connections = live_wiring.connections()
    connection = sample("socket_connect")["requestContext"]["connectionId"]
    invoke("socket", sample("socket_connect"))
    asked: Any = {"QueueUrl": os.environ["DEADLINE_QUEUE_URL"], "AttributeNames": ["All"]}
    waiting = boto3.client("sqs", region_name="us-east-1").get_queue_attributes(**asked)["Attributes"]
    assert waiting["ApproximateNumberOfMessagesDelayed"] == "1"

    turn = connections.line_up(connection, "connect", core.now_ms())
    busy = invoke("socket", sample("socket_deadline"))
    assert len(busy["batchItemFailures"]) == 1, "it may be saying connect"
    connections.end_turn(turn, Connection(connection, identity=EVERYONE), core.now_ms())
    assert invoke("socket", sample("socket_deadline")) == {"batchItemFailures": []}
    assert not wire.closed

    turn = connections.line_up(connection, "x", core.now_ms())
    connections.end_turn(turn, Connection(connection, missteps=1), core.now_ms())
    assert invoke("socket", sample("socket_deadline")) == {"batchItemFailures": []}
    assert wire.closed == {connection}
    assert connections.line_up(connection, "x", 0).refused == "gone"
    assert invoke("socket", sample("socket_deadline")) == {"batchItemFailures": []}, "again is fine"


def changed(sent: dict[str, Any], body: Any = None, **changes: Any) -> dict[str, Any]:
    """A sample with another body or other parts."""
    return {**sent, **({} if body is None else {"body": json.dumps(body)}), **changes}


def test_negotiate_then_emit_then_poll_then_status() -> None:
    """T5, T1, T6, T11."""
    assert answer("emit", sample("emit"), 409)["machine_code"] == "SDK_RUNTIME_INVALID_STATE"
    assert answer("emit", sample("effective"), 409)["machine_code"] == "SDK_RUNTIME_INVALID_STATE"
    agreed = answer("emit", sample("negotiate"))
    assert answer("emit", sample("effective")) == agreed
    assert agreed["effective_capabilities"] == ["sdk.capability.receipt_terminality"]
    assert answer("emit", sample("emit")) == {"event_id": "evt-1", "seq_no": 1, "deduped": False}
    assert answer("emit", sample("emit")) == {"event_id": "evt-1", "seq_no": 1, "deduped": True}
    batch = answer("poll", sample("poll"))
    (event,) = batch["events"]
    assert (event["event_id"], event["seq_no"], batch["dropped_count"]) == ("evt-1", 1, 0)
    assert event["peer_id"].startswith("hmac:")
    following = changed(sample("poll"), queryStringParameters={"cursor": batch["next_cursor"]})
    assert answer("poll", following)["events"] == []
    (stream,) = answer("poll", sample("status"))["streams"]
    assert (stream["stream_id"], stream["seq_no"], stream["projection"]["deliveries"]) == ("delivery", 1, {"queued": 1})


def test_a_batch_is_answered_with_one_result_each() -> None:
    """T12: with the event's id, when it has one."""
    answer("emit", sample("negotiate"))
    event = json.loads(sample("emit")["body"])
    bad = [{**event, "event_type": CANARY}, {**event, "event_id": 7}, {**event, "payload": {"to": "queued", "n": 1}}]
    results = answer("emit", changed(sample("emit"), {"events": [event, *bad, event]}))["results"]
    assert results[0] == {"event_id": "evt-1", "seq_no": 1, "deduped": False}
    assert [one.get("machine_code", "")[4:] for one in results] == [
        "",
        "VALIDATION_INVALID_ARGUMENT",
        "VALIDATION_INVALID_ARGUMENT",
        "RUNTIME_CONFLICT",
        "",
    ]
    assert [one.get("event_id") for one in results] == ["evt-1", "evt-1", None, "evt-1", "evt-1"]
    assert results[4]["deduped"]
    assert CANARY not in json.dumps(results)


def test_a_marker_is_created_listed_moved_and_deleted() -> None:
    """M1–M5."""
    answer("emit", sample("negotiate"))
    assert answer("markers", sample("marker_create"))["marker"]["revision"] == 1
    assert answer("markers", sample("marker_create"), 409)["details"]["observed_revision"] == 1
    assert answer("markers", sample("marker_move"))["marker"]["revision"] == 2
    assert answer("markers", sample("marker_move"), 409)["machine_code"] == "SDK_RUNTIME_CONFLICT"
    listed = answer("markers", sample("marker_list"))
    assert ([one["marker_id"] for one in listed["markers"]], listed["next_cursor"]) == (["gate"], None)
    assert answer("markers", sample("marker_delete")) == {"accepted": True, "marker_id": "gate", "revision": 3}
    assert answer("markers", sample("marker_delete")) == {"accepted": False, "marker_id": "gate"}
    told = changed(sample("poll"), pathParameters={"runtime_id": "rt-1", "stream_id": "markers"})
    assert [one["event_id"] for one in answer("poll", told)["events"]] == [f"marker-gate-{n}" for n in (1, 2, 3)]


def test_the_settling_function_sees_to_what_a_dead_one_left() -> None:
    """M5."""
    ledger = stream_ledger("default", "rt-1", "markers")
    pending = Announcement(ledger, Draft("marker-gate-1", b"x" * 17, b"{}"), "C1")
    group = marker_group("default", "rt-1")
    streams_wiring.rows().put(group, "gate", VersionedRow(1, {"record": {}, "deleted": False}, "n", pending))
    streams_wiring.rows().leave(Intent(group, "gate", "n"), 0)
    assert invoke("settle", sample("settle")) == {"settled": 1}
    assert invoke("settle", sample("settle")) == {"settled": 0}
    (page,) = core.log().read(ledger, 0).pages
    assert [record.id for record in page.records] == ["marker-gate-1"]


def test_a_grant_is_made_listed_used_revoked_and_audited() -> None:
    """P4."""
    answer("emit", sample("negotiate"))
    grant = answer("diagnostics", sample("grant_create"))
    answer("emit", sample("emit"))
    assert answer("diagnostics", sample("grant_list")) == {"grants": [grant]}
    raw = sample("diagnostics")
    raw["pathParameters"]["grant_id"] = grant["grant_id"]
    (entry,) = answer("diagnostics", raw)["entries"]
    assert (entry["event_id"], entry["values"]) == ("evt-1", [{"path": "peer_id", "value": "peer-7"}])
    revoked = changed(sample("grant_revoke"), queryStringParameters={"grant_id": grant["grant_id"]})
    assert answer("diagnostics", revoked)["status"] == "revoked"
    assert answer("diagnostics", raw, 403)["machine_code"] == "SDK_SECURITY_GRANT_ENDED"
    audited = answer("diagnostics", sample("audit"))
    actions = ["negotiated", "grant_made", "raw_read", "grant_revoked", "raw_read_refused"]
    assert [entry["action"] for entry in audited["events"]] == actions
    assert audited["next_after"] == 5


def query(name: str, **asked: str) -> dict[str, Any]:
    return changed(sample(name), queryStringParameters=asked)


EVENT: dict[str, Any] = json.loads(sample("emit")["body"])
BAD: list[tuple[str, dict[str, Any], int, str]] = [
    ("emit", changed(sample("emit"), body=[CANARY]), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("emit", changed(sample("emit"), body={}), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("emit", changed(sample("emit"), body={"events": []}), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("emit", changed(sample("emit"), body={"events": [EVENT] * 101}), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("emit", changed(sample("emit"), body={"events": [EVENT], "x": CANARY}), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("emit", changed(sample("emit"), body={**EVENT, "severity": CANARY}), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("emit", changed(sample("emit"), body={**EVENT, "peer_id": [CANARY]}), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("emit", changed(sample("emit"), body={**EVENT, "payload": {"to": CANARY}}), 400, "VALIDATION_INVALID_ARGUMENT"),
    (
        "emit",
        changed(sample("emit"), body={**EVENT, "payload": {"x": CANARY * 9_000}}),
        413,
        "VALIDATION_EVENT_TOO_LARGE",
    ),
    (
        "emit",
        changed(sample("emit"), body={**EVENT, "extensions": {f"k{n}": CANARY for n in range(33)}}),
        400,
        "VALIDATION_MAX_EXTENSION_KEYS_EXCEEDED",
    ),
    ("emit", {**sample("emit"), "body": f'{{"payload": "{CANARY}'}, 400, "VALIDATION_INVALID_ARGUMENT"),
    ("emit", {**sample("emit"), "body": f'{{"a": "{CANARY}", "a": "{CANARY}"}}'}, 400, "VALIDATION_INVALID_ARGUMENT"),
    ("emit", {**sample("emit"), "body": CANARY * 200_000}, 413, "VALIDATION_BATCH_TOO_LARGE"),
    ("emit", {**sample("emit"), "headers": {}}, 401, "SECURITY_AUTH_REQUIRED"),
    (
        "emit",
        changed(sample("negotiate"), body={"supported_contract_versions": [1]}),
        409,
        "CAPABILITY_CONTRACT_INCOMPATIBLE",
    ),
    ("emit", changed(sample("negotiate"), body={"profile": CANARY}), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("poll", query("poll", cursor=CANARY), 400, "RUNTIME_INVALID_CURSOR"),
    ("poll", query("poll", cursor=""), 400, "RUNTIME_INVALID_CURSOR"),
    ("poll", query("poll", max="0"), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("poll", query("poll", max="-1"), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("poll", query("poll", max=CANARY), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("poll", query("poll", max=""), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("poll", query("poll", max="257"), 400, "VALIDATION_MAX_POLL_EVENTS_EXCEEDED"),
    ("poll", query("poll", curser=CANARY), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("poll", query("status", rebuild=CANARY), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("markers", changed(sample("marker_create"), body={"label": [CANARY]}), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("markers", changed(sample("marker_move"), body={"position": CANARY}), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("markers", sample("marker_move"), 404, "RUNTIME_NOT_FOUND"),
    ("markers", query("marker_delete"), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("markers", query("marker_delete", expected_revision="0"), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("markers", query("marker_delete", expected_revision=CANARY), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("markers", query("marker_list", cursor=CANARY), 400, "RUNTIME_INVALID_CURSOR"),
    ("markers", query("marker_list", max="501"), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("markers", query("marker_list", topic_id=""), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("diagnostics", changed(sample("grant_create"), body={"reason": [CANARY]}), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("diagnostics", sample("diagnostics"), 404, "RUNTIME_NOT_FOUND"),
    ("diagnostics", sample("grant_revoke"), 404, "RUNTIME_NOT_FOUND"),
    ("diagnostics", query("grant_revoke"), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("diagnostics", query("diagnostics", after=CANARY * 100), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("diagnostics", query("diagnostics", max="101"), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("diagnostics", query("audit", after="-1"), 400, "VALIDATION_INVALID_ARGUMENT"),
    ("diagnostics", query("audit", max="501"), 400, "VALIDATION_INVALID_ARGUMENT"),
]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """The functions' log, of this test alone."""
    text = io.StringIO()
    logger = Logger(service=uuid.uuid4().hex, stream=text)
    monkeypatch.setattr(observe, "logger", lambda: logger)
    return text


def test_a_bad_request_gets_the_contracts_error_and_neither_answer_nor_log_holds_a_value(
    written: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    """T12, P2: each has its status and code, and one line in the log."""
    answer("emit", sample("negotiate"))
    for name, event, status, code in BAD:
        written.truncate(written.seek(0))
        body = answer(name, event, status)
        assert body["machine_code"] == f"SDK_{code}", (name, event)
        said = {"machine_code", "category", "retryable", "is_user_actionable", "message", "details"}
        assert body.keys() == said
        (line,) = written.getvalue().splitlines()
        assert (json.loads(line)["message"], json.loads(line)["status"]) == ("request", status)
        for text in (json.dumps(body), line, capsys.readouterr().out):
            assert CANARY not in text


def test_who_is_not_allowed_is_told_in_the_contracts_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """T12: 401 with the way to authenticate, 403 with what is missing."""
    unknown = invoke("poll", {**sample("poll"), "headers": {}})
    assert (unknown["statusCode"], unknown["headers"]["www-authenticate"]) == (401, "Bearer")
    nobody = Identity("C1", "default", frozenset(), ("*",), frozenset(), "default", 10**15)
    monkeypatch.setattr(Trusting, "verify", lambda _self, _token: nobody)
    for name, event in (
        ("emit", sample("negotiate")),
        ("emit", sample("emit")),
        ("poll", sample("poll")),
        ("poll", sample("status")),
        ("markers", sample("marker_create")),
        ("markers", sample("marker_list")),
        ("markers", sample("marker_move")),
        ("markers", sample("marker_delete")),
        ("diagnostics", sample("grant_create")),
        ("diagnostics", sample("grant_list")),
        ("diagnostics", sample("grant_revoke")),
        ("diagnostics", sample("diagnostics")),
        ("diagnostics", sample("audit")),
    ):
        body = answer(name, event, 403)
        assert (body["machine_code"], "role" in body["details"]) == ("SDK_SECURITY_AUTHZ_DENIED", True)


def test_storage_that_does_not_answer_is_503_and_says_when_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """T12."""
    answer("emit", sample("negotiate"))
    monkeypatch.setenv("STATE_TABLE", "gone")
    forget_wiring()
    for name, event in (("emit", sample("emit")), ("poll", sample("poll")), ("markers", sample("marker_list"))):
        answered = invoke(name, event)
        assert (answered["statusCode"], answered["headers"]["retry-after"]) == (503, "1")
        body = json.loads(answered["body"])
        assert (body["machine_code"], body["retryable"]) == ("SDK_INTERNAL_UNAVAILABLE", True)


def test_emissions_are_counted_as_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    answer("emit", sample("negotiate"))
    capsys.readouterr()
    events = [EVENT, EVENT, {**EVENT, "event_id": "e2", "event_type": "Other"}]
    answer("emit", changed(sample("emit"), {"events": events}))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (metric,) = [line for line in lines if "_aws" in line]
    assert {name: metric[name] for name in ("contract", "EventsCommitted", "EventsDeduplicated", "EventsRefused")} == {
        "contract": "streams",
        "EventsCommitted": [1],
        "EventsDeduplicated": [1],
        "EventsRefused": [1],
    }


def test_every_sample_is_used() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    used = set(tests.split('sample("')[1:])
    names = {text.split('"')[0] for text in used}
    assert {path.stem for path in (ROOT / "tests/events").glob("*.json")} <= names


def test_every_function_is_called_on_an_event_as_aws_sends_it() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    called = set(re.findall(r'(?:invoke|answer)\(\s*"(\w+)"', tests))
    assert {app.parent.name for app in (ROOT / "functions").glob("*/app.py")} <= called
