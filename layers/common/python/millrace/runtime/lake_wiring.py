"""Wiring of the catalog, the archive and retention, built on first use like everything in `wiring`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from millrace.runtime import wiring
from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from millrace.adapters.dynamodb.retention import DynamoPolicies
    from millrace.adapters.s3_objects import S3Objects
    from millrace.application.archive_events import ArchiveEvents
    from millrace.application.record_catalog import RecordCatalog
    from millrace.application.set_retention import SetRetention


@cache
def record_catalog() -> RecordCatalog:
    from millrace.application.record_catalog import RecordCatalog

    return RecordCatalog(wiring.commit())


@cache
def objects() -> S3Objects:
    from millrace.adapters.clients import s3_client
    from millrace.adapters.s3_objects import S3Objects

    return S3Objects(s3_client(), setting("ARCHIVE_BUCKET"))


def archive_events(may_go_on: Callable[[], bool]) -> ArchiveEvents:
    from millrace.adapters.dynamodb.archive import DynamoLanes
    from millrace.application.archive_events import ArchiveEvents

    lanes = DynamoLanes(wiring.dynamodb(), setting("STATE_TABLE"))
    return ArchiveEvents(wiring.log(), wiring.state(), lanes, objects(), wiring.together(), wiring.pause, may_go_on)


@cache
def policies() -> DynamoPolicies:
    from millrace.adapters.dynamodb.retention import DynamoPolicies

    return DynamoPolicies(wiring.dynamodb(), setting("STATE_TABLE"))


@cache
def set_retention() -> SetRetention:
    from millrace.application.set_retention import SetRetention

    return SetRetention(policies(), wiring.log(), wiring.state(), wiring.heads())
