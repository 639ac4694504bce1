"""Live delivery: how long a broadcast takes, how many a second there are, and what each costs."""

from __future__ import annotations

from tests.bench import crowd, latency, live_costs
from tests.bench.hub import own_hub
from tests.bench.report import Section, Table
from tests.bench.rig import own_rig


def run(connections: int = crowd.CONNECTIONS) -> Section:
    with own_rig() as rig:
        fan_out, messages = live_costs.fan_out_rows(rig), live_costs.message_rows(rig)
        backlog = live_costs.backlog_rows(rig)
        figures = live_costs.held(rig)
    with own_hub({"TenantConnections": str(2 * connections)}) as hub:
        taken = latency.rows(hub)
        delivered = crowd.deliver(hub, connections)
    return Section(
        [
            Table("latency", "Latency at a gentle pace, stream and broadcast in turns", taken),
            Table("crowd", "Many connections on one partition", [delivered.row()]),
            Table("fan_out", "One run of the fan-out: calls and units in DynamoDB, posts to API Gateway", fan_out),
            Table("backlog", "One run of the fan-out over many events, for one subscriber", backlog),
            Table("messages", "Messages of a connection, in DynamoDB", messages),
        ],
        [delivered.figure(), *figures],
    )
