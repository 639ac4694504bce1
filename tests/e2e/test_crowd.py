"""A crowd on a whole hub: real sockets, and workers that serve a shard of them each."""

from __future__ import annotations

import pytest

from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.domain.names import Ledger
from tests.bench.crowd import PROJECT, deliver
from tests.bench.hub import own_hub

CONNECTIONS, EVENTS = 64, 6
A_SHARD = 16


@pytest.mark.slow
def test_s9_every_connection_of_a_crowd_gets_every_event_in_order() -> None:
    with own_hub({"CrowdConnections": str(A_SHARD)}) as hub:
        delivered = deliver(hub, CONNECTIONS, EVENTS)
        assert delivered.complete == CONNECTIONS, delivered.heard
        ledger = Ledger.of("sync", "default", PROJECT)
        marks = DynamoState(hub.client("dynamodb"), hub.stack.tables["state"]).marks(ledger)
        assert marks.shards > 1, "it was served in shards"
