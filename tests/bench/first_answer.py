"""First answers: from the start of a process to its first correct answer, beside the usual eager stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
import jwt

from local.emulator import emulator, free_port
from tests.bench.cold_start import EAGER_WITH_TOKENS, ENVIRONMENT, ROOT
from tests.bench.report import Section, Table, at_most
from tests.support.aws_tables import client_for, create_tables

REPETITIONS = 5
RATIO = 0.6
KEY = "k" * 48
DOORS = {
    "submit": "write",
    "publish": "write",
    "emit": "write",
    "sync": "read",
    "poll": "read",
    "replay": "read",
    "catalog": "write",
    "ingest": "write",
    "markers": "write",
    "targets": "read",
    "retention": "read",
}
HELD = ("submit", "publish", "emit", "sync", "poll")
ASKED = {"markers": "marker_create", "targets": "target_list", "retention": "retention_read"}
"""The recorded request, where it is not called as its function is."""
CLAIMS = {
    "iss": "bench",
    "aud": "bench",
    "client_id": "bench",
    "roles": ["producer", "consumer", "operator"],
    "projects": ["demo"],
    "partitions": ["*"],
}
IMPORTS = EAGER_WITH_TOKENS.replace("boto3.client(", "client = boto3.client(")
OURS = """import json, sys, app
answer = app.handler(json.loads(sys.stdin.read()), None)
status, body = answer["statusCode"], answer["body"]"""
TOKEN = """import json, os, sys
event = json.loads(sys.stdin.read())
secret = SecretsProvider().get(os.environ["TOKEN_SECRET_ARN"])
token = event["headers"]["authorization"].split()[1]
claims = jwt.decode(token, secret, algorithms=["HS256"], audience="bench", issuer="bench")
status, body = 200, json.dumps(claims)
"""
EAGER = {
    "write": f"""{IMPORTS}
{TOKEN}
new = os.urandom(8).hex()
client.put_item(
    TableName=os.environ["CLAIMS_TABLE"], Item={{"k": {{"S": new}}}}, ConditionExpression="attribute_not_exists(k)"
)
client.put_item(
    TableName=os.environ["LOG_TABLE"],
    Item={{"b": {{"S": new}}, "f": {{"N": "1"}}, "e": {{"B": event["body"].encode()}}}},
    ConditionExpression="attribute_not_exists(b)",
)""",
    "read": f"""{IMPORTS}
{TOKEN}
client.query(
    TableName=os.environ["LOG_TABLE"], KeyConditionExpression="b = :b", ExpressionAttributeValues={{":b": {{"S": "x"}}}}
)""",
}
"""What an eager function does at the least for such a request: the secret, the token, and two puts or one query."""
TOLD = "\nimport time\nprint(json.dumps([time.process_time() * 1000, status, body]))"


def run() -> Section:
    with TemporaryDirectory() as home, emulator(Path(home), free_port()) as emulated:
        environment = _environment(emulated.endpoint_url)
        _answer("emit", OURS, _event("negotiate"), environment)
        measured = _measured(environment)
    rows: list[dict[str, Any]] = []
    for door, kind in DOORS.items():
        (cpu, wall), (eager_cpu, eager_wall) = measured[door], measured[kind]
        rows.append(
            {
                "function": door,
                "CPU, ms": round(cpu),
                "eager, CPU, ms": round(eager_cpu),
                "ratio of CPU": round(cpu / eager_cpu, 2),
                "time, ms": round(wall),
                "eager, time, ms": round(eager_wall),
            }
        )
    held = [row for row in rows if row["function"] in HELD]
    figures = [at_most(f"first answer of {row['function']} / eager, CPU", RATIO, row["ratio of CPU"]) for row in held]
    title = f"Start of a process to its first answer, best of {REPETITIONS}, in turn"
    return Section([Table("first_answer", title, rows)], figures)


def _measured(environment: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    best = dict.fromkeys((*DOORS, *EAGER), (float("inf"), float("inf")))
    for repetition in range(REPETITIONS + 1):
        for name in best:
            event = _event(ASKED.get(name, name) if name in DOORS else "submit", repetition)
            cpu, wall = _answer(name, EAGER.get(name, OURS), event, environment)
            if repetition:
                best[name] = min(best[name][0], cpu), min(best[name][1], wall)
    return best


def _environment(endpoint: str) -> dict[str, str]:
    tables = create_tables(client_for(endpoint))
    secrets = boto3.client(
        "secretsmanager",
        "us-east-1",
        endpoint_url=endpoint,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    arn = secrets.create_secret(Name="token", SecretString=KEY)["ARN"]
    names = ("claims", "log", "state", "waiting", "index", "connections", "diagnostics", "delivery")
    named = {f"{name.upper()}_TABLE": getattr(tables, name) for name in names}
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    secret = {"TOKEN_SECRET_ARN": arn, "STREAM_SECRET_ARN": arn}
    access = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    return {**kept, **ENVIRONMENT, **named, **secret, **access}


def _event(door: str, number: int = 0) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((ROOT / "tests" / "events" / f"{door}.json").read_text())
    token = jwt.encode({**CLAIMS, "exp": int(time.time()) + 600}, KEY, "HS256")
    event["headers"]["authorization"] = f"Bearer {token}"
    body = str(event.get("body") or "")
    for id_ in ("order-17-paid", "evt-1", "msg-1", "build-17-done", '"marker_id": "gate'):
        body = body.replace(id_, f"{id_}-{number}")
    event["body"] = body or None
    return event


def _answer(name: str, code: str, event: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[float, float]:
    """CPU of the whole process, and how long it took."""
    layer = ROOT / "layers" / "common" / "python"
    path = os.pathsep.join(map(str, (layer, ROOT / "functions" / name)))
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", f"{code}{TOLD}"],
        env={**environment, "PYTHONPATH": path},
        input=json.dumps(event),
        check=True,
        capture_output=True,
        text=True,
    )
    wall = (time.perf_counter() - started) * 1000
    cpu, status, body = json.loads(done.stdout.splitlines()[-1])
    assert status < 300, f"{name}: {status} {body}"
    return float(cpu), wall
