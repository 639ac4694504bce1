"""One event alone, committed by the library, beside Castore's adapter for DynamoDB: one after the other, in turns.

Castore puts an item at a version that its caller names. We validate the event, claim its id in the whole project, find
its position and put its page: two calls instead of one. Castore comes from npm (`make bench ARGS="--only castore"`).
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from local.emulator import emulator, free_port
from local.stack import ROOT
from millrace.ledger.adapters.dynamodb.claims import DynamoClaims
from millrace.ledger.adapters.dynamodb.log import DynamoLog
from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.wiring import pause
from millrace.sync.application.submit import Submit
from tests.bench.events import IDENTITY, items
from tests.bench.report import Figure, Section, Table
from tests.bench.rig import Clock
from tests.support.aws_tables import client_for, create_tables, lean_client_for

EVENTS, ROUNDS = 200, 5
PACKAGES = (
    "@castore/core@2.4.2",
    "@castore/event-storage-adapter-dynamodb@2.4.2",
    "@aws-sdk/client-dynamodb@3",
    "@aws-sdk/util-dynamodb@3",
)
SCRIPT = """
const { DynamoDBClient } = require('@aws-sdk/client-dynamodb');
const { DynamoDBSingleTableEventStorageAdapter: Adapter } = require('@castore/event-storage-adapter-dynamodb');
const { endpoint, table, aggregate, events, warm } = JSON.parse(require('fs').readFileSync(0));
const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
const dynamoDBClient = new DynamoDBClient({ endpoint, region: 'us-east-1', credentials });
const adapter = new Adapter({ tableName: table, dynamoDBClient });
const push = (payload, version) =>
  adapter.pushEvent({ aggregateId: aggregate, version, type: 'T', payload }, { eventStoreId: 'bench' });
(async () => {
  let version = 0;
  for (let n = 0; n < warm; n++) await push(events[n], ++version);
  const cpu = process.cpuUsage(), began = process.hrtime.bigint();
  for (const payload of events.slice(warm)) await push(payload, ++version);
  const seconds = Number(process.hrtime.bigint() - began) / 1e9, used = process.cpuUsage(cpu);
  console.log(JSON.stringify({ seconds, cpu: (used.user + used.system) / 1e6 }));
})();
"""
WARM = 100
"""Events before the measured ones: a process that has just started compiles its code and opens connections."""


def run() -> Section:
    folder = _installed()
    best: dict[str, dict[str, float]] = {}
    with TemporaryDirectory() as home, emulator(Path(home), free_port()) as emulated:
        for number in range(ROUNDS):
            for name, took in (
                ("Castore", _castore(folder, emulated.endpoint_url, number)),
                ("Millrace", _ours(emulated.endpoint_url, number)),
            ):
                known = best.setdefault(name, took)
                best[name] = {what: min(known[what], took[what]) for what in took}
    rows = [
        {
            "library": name,
            "events a second": round(EVENTS / took["seconds"]),
            "CPU of an event, ms": round(took["cpu"] / EVENTS * 1_000, 2),
        }
        for name, took in best.items()
    ]
    ratio = best["Castore"]["seconds"] / best["Millrace"]["seconds"]
    held = Figure("events a second, one alone, over Castore's", "≥ 1", f"{ratio:.2f}", ratio >= 1)
    return Section(
        [Table("alone", f"{EVENTS} events, each alone and after the other, best of {ROUNDS}, in turns", rows)], [held]
    )


def _installed() -> Path:
    folder = ROOT / "build/castore"
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES], cwd=folder, check=True)
    (folder / "push.cjs").write_text(SCRIPT)
    return folder


def _events(seed: int) -> list[dict[str, Any]]:
    return items("realistic", WARM + EVENTS, seed)


def _castore(folder: Path, endpoint: str, number: int) -> dict[str, float]:
    table = f"castore-{uuid4().hex[:8]}"
    keys = {"aggregateId": "HASH", "version": "RANGE"}
    initial = {"eventStoreId": "HASH", "timestamp": "RANGE"}
    kinds = {"aggregateId": "S", "version": "N", "eventStoreId": "S", "timestamp": "S"}
    client: Any = client_for(endpoint)
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": k} for n, k in kinds.items()],
        KeySchema=[{"AttributeName": n, "KeyType": k} for n, k in keys.items()],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "initialEvents",
                "KeySchema": [{"AttributeName": n, "KeyType": k} for n, k in initial.items()],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
    asked = {"endpoint": endpoint, "table": table, "aggregate": uuid4().hex, "warm": WARM}
    payloads = [item["event"] for item in _events(number)]
    told = subprocess.run(
        ["node", "push.cjs"],
        input=json.dumps(asked | {"events": payloads}),
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    measured: dict[str, float] = json.loads(told.stdout)
    return measured


def _ours(endpoint: str, number: int) -> dict[str, float]:
    tables = create_tables(lean_client_for(endpoint), ("Claims", "Log", "State"))
    clock, together, client = Clock(), Threads(), tables.client
    commit = Commit(
        DynamoClaims(client, tables.claims, together),
        DynamoLog(client, tables.log, together),
        DynamoState(client, tables.state),
        Heads(clock),
        together,
        clock,
        lambda: os.urandom(12),
        pause,
    )
    submit = Submit(commit, clock, lambda *_: "open")
    events = _events(number)
    for event in events[:WARM]:
        submit(IDENTITY, "demo", {"events": [event]})
    cpu, began = time.process_time(), time.perf_counter()
    for event in events[WARM:]:
        (result,) = submit(IDENTITY, "demo", {"events": [event]})
        assert result["status"] == "committed"
    return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
