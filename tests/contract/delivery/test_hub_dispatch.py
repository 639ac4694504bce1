"""The dispatcher on the hub's journal: the same tests as on the others, on a table in memory and the embedded stack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from millrace.ledger.adapters.threads import Threads
from tests.support.aws_tables import client_of
from tests.support.hub_world import HubWorld, on_dynamodb, on_table
from tests.support.table import Table
from tests.unit.delivery import test_dispatch as shared

NOT_HERE = {
    "test_a_drain_goes_on_past_an_event_that_was_replaced_in_time",
    "test_a_wanted_event_is_found_behind_any_number_of_others",
}
"""What is committed is never replaced; and a hub has no events that are for itself alone."""

globals().update(
    {name: test for name, test in vars(shared).items() if name.startswith("test_") and name not in NOT_HERE}
)


@pytest.fixture(params=["table", "embedded", "lean"])
def world(request: pytest.FixtureRequest) -> Iterator[HubWorld]:
    if request.param == "table":
        yield on_table(Table(), "delivery")
    else:
        yield on_dynamodb(client_of(request), Threads())
