"""Sends what is new in a ledger to the connections of one shard of its crowd. Called by fan_out, and by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.live import wiring
from millrace.live.adapters.crew import shares_of
from millrace.runtime import observe


def handler(event: Mapping[str, Any], _context: Any) -> None:
    shares = shares_of(event)
    share = wiring.crew().spread(shares)
    served = wiring.serve_shard()(share)
    observe.logger().info(
        "crowd_served", shard=share.shard.number, of=share.shard.count, called=len(shares), ran=served
    )
