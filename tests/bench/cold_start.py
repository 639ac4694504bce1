"""Cold start: what importing each handler costs in a fresh interpreter, beside doing everything eagerly."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.report import Figure, Section, Table, at_most

ROOT = Path(__file__).parents[2]
REPETITIONS = 9
RATIO = 0.75

CLIENT = "import boto3\nboto3.client('dynamodb')"
EAGER = f"""{CLIENT}
from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from pydantic import BaseModel
Logger()
Metrics()
APIGatewayHttpResolver()"""

EAGER_WITH_TOKENS = f"""{EAGER}
import jwt
from aws_lambda_powertools.utilities.parameters import SecretsProvider
SecretsProvider()"""

LOGGER = "from millrace.runtime import observe\nobserve.logger()"
TOKENS = "from millrace.runtime import bearer\nbearer.tokens()"
CORE = "from millrace.ledger import wiring as core"
SYNC, LIVE, REALTIME, STREAMS, DELIVERY, LAKE = (
    f"from millrace.{room} import wiring" for room in ("sync", "live", "realtime", "streams", "delivery", "lake")
)
SECRET = "from millrace.runtime.clients import secrets_client\nsecrets_client()"
SNAPSHOT = """import sys, types
preloads = []
sys.modules["snapshot_restore_py"] = types.SimpleNamespace(register_before_snapshot=preloads.append)"""
"""Stands in for Lambda's module, which is told what to load before a snapshot."""
PRELOADED = f"{LOGGER}\nfor preload in preloads:\n    preload()\n{SECRET}"
LISTED: Mapping[str, str] = {
    "submit": f"{LOGGER}\nobserve._metrics()\n{TOKENS}\n{SYNC}\nwiring.submit()\n{SECRET}",
    "sync": f"{LOGGER}\n{TOKENS}\n{SYNC}\nwiring.read_project()\n{SECRET}",
    "meta": LOGGER,
    "socket": f"{LOGGER}\n{TOKENS}\n{LIVE}\nwiring.converse()\n{SECRET}",
    "crowd": f"{LOGGER}\n{LIVE}\nwiring.serve_shard()",
    "fan_out": f"{LOGGER}\n{LIVE}\nwiring.fan_out(lambda: True, lambda ledgers: 0)",
    "index": f"{LOGGER}\n{SYNC}\nwiring.index_partitions(lambda: True)\n{REALTIME}\nwiring.index_times(lambda: True)",
    "sweep": f"{LOGGER}\n{CORE}\ncore.sweep(lambda: True, lambda ledgers: 0)",
    "publish": (f"{LOGGER}\nobserve._metrics()\n{TOKENS}\n{REALTIME}\nwiring.take_events()\n{SECRET}"),
    "replay": (
        f"{LOGGER}\n{TOKENS}\n{REALTIME}\nwiring.replay()\nwiring.transcripts()\nwiring.realtime_metrics()\n{SECRET}"
    ),
    "emit": f"{LOGGER}\nobserve._metrics()\n{TOKENS}\n{STREAMS}\nwiring.emit()\n{SECRET}",
    "poll": f"{LOGGER}\n{TOKENS}\n{STREAMS}\nwiring.poll()\n{SECRET}",
    "markers": f"{LOGGER}\n{TOKENS}\n{STREAMS}\nwiring.markers()\n{SECRET}",
    "diagnostics": f"{LOGGER}\n{TOKENS}\n{STREAMS}\nwiring.diagnostics()\n{SECRET}",
    "settle": f"{LOGGER}\n{STREAMS}\nwiring.settle_markers(lambda: True)",
    "catalog": f"{LOGGER}\n{TOKENS}\n{LAKE}\nwiring.record_catalog()\n{SECRET}",
    "archive": f"{LOGGER}\nobserve._metrics()\n{LAKE}\nwiring.archive_events(lambda: True)",
    "retention": f"{LOGGER}\n{TOKENS}\n{LAKE}\nwiring.set_retention()\n{SECRET}",
    "ingest": f"{LOGGER}\n{TOKENS}\n{DELIVERY}\nwiring.ingest()\n{SECRET}",
    "targets": f"{LOGGER}\n{TOKENS}\n{DELIVERY}\nwiring.targets()\nwiring.status()\n{SECRET}",
    "deliver": f"{LOGGER}\nobserve._metrics()\n{DELIVERY}\nwiring.deliver(lambda: True)",
    "remind": f"{LOGGER}\n{DELIVERY}\nwiring.remind_targets(lambda: True)",
}
FIRST_REQUEST: Mapping[str, str] = {
    **LISTED,
    **{
        app.parent.name: PRELOADED
        for app in sorted((ROOT / "functions").glob("*/app.py"))
        if app.parent.name not in LISTED
    },
}
"""What a first request imports. A function that is not listed imports what it would load before a snapshot."""
TABLES = ("CLAIMS", "LOG", "STATE", "WAITING", "INDEX", "CONNECTIONS", "DIAGNOSTICS", "DELIVERY")
ENVIRONMENT: Mapping[str, str] = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_EC2_METADATA_DISABLED": "true",
    "POWERTOOLS_SERVICE_NAME": "bench",
    "POWERTOOLS_METRICS_NAMESPACE": "bench",
    "POWERTOOLS_TRACE_DISABLED": "true",
    "TOKEN_ISSUER": "bench",
    "TOKEN_AUDIENCE": "bench",
    "TOKEN_SECRET_ARN": "bench",
    "STREAM_SECRET_ARN": "bench",
    "INDEX_QUEUE_URL": "http://localhost/queue",
    "WAKE_QUEUE_URL": "http://localhost/wakes",
    "ARCHIVE_QUEUE_URL": "http://localhost/archive",
    "DELIVER_QUEUE_URL": "http://localhost/deliver.fifo",
    "SNAPSHOT_QUEUE_URL": "http://localhost/snapshot",
    "CROWD_FUNCTION": "bench",
    "DELIVERY_SECRET_ARN": "bench",
    "ARCHIVE_BUCKET": "bench",
    "SOCKET_API_ID": "bench",
    "SOCKET_STAGE": "live",
    **{f"{table}_TABLE": table.lower() for table in TABLES},
}


def run() -> Section:
    measured = _interleaved(_variants())
    eager, client = measured["eager"], measured["client"]
    rows: list[dict[str, Any]] = [
        {"what": "boto3 and one client", "import, ms": client, "ratio to eager": round(client / eager, 2)},
        {
            "what": "eager: the same, Powertools, resolver, pydantic",
            "import, ms": eager,
            "ratio to eager": 1.0,
        },
        {
            "what": "eager, and what functions that check tokens need (jwt, a client for the secret)",
            "import, ms": measured["eager with tokens"],
            "ratio to eager": round(measured["eager with tokens"] / eager, 2),
        },
    ]
    figures: list[Figure] = []
    handlers: list[dict[str, Any]] = []
    for name in FIRST_REQUEST:
        imported, first = measured[name], measured[f"{name}, first request"]
        handlers.append(
            {
                "function": name,
                "import, ms": imported,
                "ratio to eager": round(imported / eager, 2),
                "import and first request's imports, ms": first,
                "ratio to eager, first request": round(first / eager, 2),
            }
        )
        figures.append(at_most(f"import of {name} / eager baseline", RATIO, round(imported / eager, 2)))
    return Section(
        [
            Table("handlers", f"Import in a fresh interpreter, best of {REPETITIONS}", handlers),
            Table("baselines", "Baselines, interleaved with the handlers", rows),
        ],
        figures,
    )


def _variants() -> dict[str, tuple[str, list[Path]]]:
    """Name → what to run, and the folders it imports from."""
    layer = ROOT / "layers" / "common" / "python"
    variants: dict[str, tuple[str, list[Path]]] = {
        "client": (CLIENT, []),
        "eager": (EAGER, []),
        "eager with tokens": (EAGER_WITH_TOKENS, []),
    }
    for name, then in FIRST_REQUEST.items():
        folders = [layer, ROOT / "functions" / name]
        variants[name] = ("import app", folders)
        variants[f"{name}, first request"] = (f"{SNAPSHOT}\nimport app\n{then}", folders)
    return variants


def _interleaved(variants: Mapping[str, tuple[str, list[Path]]]) -> dict[str, float]:
    """Each variant once, then each once more: noise of the machine hits them all. The first round warms the caches."""
    best = dict.fromkeys(variants, float("inf"))
    for repetition in range(REPETITIONS + 1):
        for name, (code, folders) in variants.items():
            taken = _milliseconds(code, folders)
            if repetition:
                best[name] = min(best[name], taken)
    return {name: round(taken, 1) for name, taken in best.items()}


def _milliseconds(code: str, folders: list[Path]) -> float:
    program = f"import time\nstarted = time.perf_counter()\n{code}\nprint((time.perf_counter() - started) * 1000)"
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    environment = {**kept, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True, cwd=ROOT
    )
    return float(done.stdout.splitlines()[-1])
