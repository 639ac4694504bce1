"""Settings: read from the environment when asked for, never at import."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from millrace.ledger.adapters.wire.regions import suffix


def setting(name: str, default: str | None = None) -> str:
    """Raises a `RuntimeError` that names what the deployment forgot."""
    value = os.environ.get(name, default)
    if value is None:
        raise RuntimeError(f"the environment variable {name} is not set")
    return value


def origins() -> frozenset[str]:
    """Where browsers may call from."""
    return frozenset(origin for origin in setting("CORS_ORIGINS", "").replace(" ", "").split(",") if origin)


def profiles() -> Mapping[str, str]:
    """`tenant/project` → profile of the sync contract."""
    chosen: Mapping[str, str] = json.loads(setting("PROJECT_PROFILES", "{}"))
    return chosen


def privacy() -> Mapping[str, Any]:
    """The privacy policy's own fields, beyond the built-in classes."""
    chosen: Mapping[str, Any] = json.loads(setting("PRIVACY_POLICY", "{}"))
    return chosen


def loopback_targets() -> bool:
    """Whether targets on this very machine may be delivered to. Only the embedded stack says so: no template sets the
    variable, and where there is no emulator it means nothing."""
    return "AWS_ENDPOINT_URL" in os.environ and setting("MILLRACE_LOOPBACK_TARGETS", "") == "yes"


def socket_url() -> str:
    """The stage of the WebSocket API, for posts to its connections: at its own address on AWS, below the endpoint of
    an emulator."""
    api_id, stage, emulator = setting("SOCKET_API_ID"), setting("SOCKET_STAGE"), os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION", "us-east-1")
    if emulator:
        return f"{emulator}/_aws/execute-api/{api_id}/{stage}"
    return f"https://{api_id}.execute-api.{region}.{suffix(region)}/{stage}"


def websocket_url() -> str:
    """Where clients open their sockets: under the deployment's own name, if it has one."""
    own = setting("SOCKET_DOMAIN", "")
    return f"wss://{own}" if own else socket_url().replace("http", "ws", 1)


def tenant_places() -> tuple[int, int]:
    """How many connections and how many subscriptions one tenant may have at once."""
    return int(setting("TENANT_CONNECTIONS", "1000")), int(setting("TENANT_SUBSCRIPTIONS", "5000"))


def connections_per_shard() -> int:
    """How many connections one worker of a crowd serves; a larger audience is split."""
    return int(setting("CROWD_CONNECTIONS", "300"))
