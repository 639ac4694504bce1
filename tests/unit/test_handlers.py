"""Each handler on an event as AWS sends it (tests/events, also for `sam local invoke`), with tables on moto."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import pytest
from moto import mock_aws

from millrace.adapters.memory_live import MemoryWire
from millrace.domain.access import Identity
from millrace.domain.ledger import Ledger
from millrace.runtime import wiring
from tests.aws_tables import client_for, create_tables

ROOT = Path(__file__).parents[2]
EVERYONE = Identity(
    "C1", "default", frozenset({"demo"}), ("*",), frozenset({"producer", "consumer"}), "default", 10**15
)


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


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables, queues and settings of a deployment, and a token that is taken for what it says."""
    with mock_aws():
        forget_wiring()
        for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
            monkeypatch.setenv(name, "us-east-1")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        tables = create_tables(client_for(None))
        for name in ("claims", "log", "state", "index", "connections"):
            monkeypatch.setenv(f"{name.upper()}_TABLE", getattr(tables, name))
        sqs = boto3.client("sqs", region_name="us-east-1")
        for queue in ("INDEX", "WAKE"):
            monkeypatch.setenv(f"{queue}_QUEUE_URL", sqs.create_queue(QueueName=queue)["QueueUrl"])
        monkeypatch.setenv("SOCKET_API_ID", "def456")
        monkeypatch.setenv("SOCKET_STAGE", "live")
        monkeypatch.setattr(wiring, "tokens", Trusting)
        yield
        forget_wiring()


class Trusting:
    def verify(self, _token: str) -> Identity:
        return EVERYONE


def forget_wiring() -> None:
    for made in vars(wiring).values():
        if hasattr(made, "cache_clear"):
            made.cache_clear()


def rings(queue: str) -> list[str]:
    sqs = boto3.client("sqs", region_name="us-east-1")
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    return [message["Body"] for message in received]


def test_submit_then_sync() -> None:
    submitted = invoke("submit", sample("submit"))
    assert submitted["statusCode"] == 200
    assert json.loads(submitted["body"])["results"][0]["committed_id"] == 1
    page = json.loads(invoke("sync", sample("sync"))["body"])
    assert [event["id"] for event in page["events"]] == ["order-17-paid"]


def test_health() -> None:
    assert json.loads(invoke("meta", sample("health"))["body"])["status"] == "ok"


def test_publish_then_replay() -> None:
    assert json.loads(invoke("publish", sample("publish"))["body"])["event"]["sequence"] == 1
    page = json.loads(invoke("replay", sample("replay"))["body"])
    assert [event["eventId"] for event in page["events"]] == ["evt-1"]


def test_the_stream_rings_the_index_which_then_follows_the_log() -> None:
    invoke("submit", sample("submit"))
    invoke("fan_out", sample("stream"))
    assert rings("INDEX") == ["sync#default#demo"]
    assert invoke("index", sample("index")) == {"batchItemFailures": []}
    marks = wiring.state().marks(Ledger.to_read("sync#default#demo"))
    assert marks.cursors == {"fan_out": 1, "index": 1}


def test_the_sweep_rings_for_what_is_behind() -> None:
    invoke("submit", sample("submit"))
    assert invoke("sweep", sample("sweep")) == {"rings": 1}
    assert rings("INDEX") == ["sync#default#demo"]
    assert rings("WAKE") == [], "it is not late yet"


def test_a_socket_is_remembered_until_it_is_gone() -> None:
    assert invoke("socket", sample("socket_connect")) == {"statusCode": 200}
    connection = sample("socket_connect")["requestContext"]["connectionId"]
    assert wiring.connections().take_turn(connection, "x", 0, 0).connection is not None
    assert invoke("socket", sample("socket_disconnect")) == {"statusCode": 200}
    assert wiring.connections().take_turn(connection, "x", 0, 0).refused == "gone"


def test_a_message_on_a_socket_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = MemoryWire()
    monkeypatch.setattr(wiring, "wire", lambda: wire)
    invoke("socket", sample("socket_connect"))
    assert invoke("socket", sample("socket_message")) == {"statusCode": 200}
    (sent,) = wire.sent[sample("socket_message")["requestContext"]["connectionId"]]
    assert json.loads(sent)["payload"]["code"] == "bad_request", "it has not said connect yet"


def test_every_sample_is_used() -> None:
    used = set(Path(__file__).read_text().split('sample("')[1:])
    names = {text.split('"')[0] for text in used}
    assert {path.stem for path in (ROOT / "tests/events").glob("*.json")} <= names
