"""Wiring of the catalog, the archive and retention, built on first use like everything in `wiring`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from millrace.ledger import wiring as core
from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millrace.lake.adapters.dynamodb.policies import DynamoPolicies
    from millrace.lake.adapters.s3_objects import S3Objects
    from millrace.lake.application.archive_events import ArchiveEvents
    from millrace.lake.application.record_catalog import RecordCatalog
    from millrace.lake.application.set_retention import SetRetention
    from millrace.lake.application.show_plan import ShowPlan
    from millrace.lake.application.show_tables import ShowTables
    from millrace.lake.application.steer_quarantine import SteerQuarantine
    from millrace.lake.application.steer_registry import SteerRegistry
    from millrace.ledger.domain.access import Identity

PAGES_PLANNED = 2_000
"""That a request for a plan reads at most."""


@cache
def record_catalog() -> RecordCatalog:
    from millrace.lake.application.record_catalog import RecordCatalog

    return RecordCatalog(core.commit())


def read_catalog_protobuf(body: bytes) -> dict[str, Any]:
    """Only who sends protobuf waits for its library."""
    from millrace.lake.adapters.catalog_proto import event_of

    return event_of(body)


@cache
def objects() -> S3Objects:
    from millrace.lake.adapters.s3_objects import S3Objects
    from millrace.runtime.clients import s3_client

    return S3Objects(s3_client(), setting("ARCHIVE_BUCKET"))


def archive_events(may_go_on: Callable[[], bool]) -> ArchiveEvents:
    from millrace.lake.adapters.dynamodb.lanes import DynamoLanes
    from millrace.lake.application.archive_events import ArchiveEvents

    lanes = DynamoLanes(core.dynamodb(), setting("STATE_TABLE"))
    return ArchiveEvents(core.log(), core.state(), lanes, objects(), core.together(), core.pause, may_go_on)


@cache
def policies() -> DynamoPolicies:
    from millrace.lake.adapters.dynamodb.policies import DynamoPolicies

    return DynamoPolicies(core.dynamodb(), setting("STATE_TABLE"))


def show_plan(targets: Callable[[Identity, str], Mapping[str, int]]) -> ShowPlan:
    """Of one request: it keeps how far it has read."""
    from millrace.lake.application.plan_retention import PlanRetention
    from millrace.lake.application.show_plan import ShowPlan

    return ShowPlan(set_retention(), PlanRetention(core.log(), core.heads(), core.now_ms, PAGES_PLANNED), targets)


@cache
def set_retention() -> SetRetention:
    from millrace.lake.application.set_retention import SetRetention

    return SetRetention(policies(), core.log(), core.state(), core.heads())


@cache
def show_tables() -> ShowTables:
    from millrace.lake.application.show_tables import ShowTables

    return ShowTables(objects())


@cache
def steer_quarantine() -> SteerQuarantine:
    from millrace.lake.application.steer_quarantine import SteerQuarantine

    return SteerQuarantine(objects(), core.together())


@cache
def steer_registry() -> SteerRegistry:
    from millrace.lake.application.steer_registry import SteerRegistry

    return SteerRegistry(objects())
