"""Request retention: what the hub lets go at a moment, left where the job finds it."""

from __future__ import annotations

from collections.abc import Iterable

from millrace.application.plan_retention import Plan
from millrace.domain.errors import Unavailable
from millrace.domain.retention import Request
from millrace.ports_lake import Objects


def request_of(plans: Iterable[Plan]) -> Request:
    """Every policy is told as the watermark it comes to now: ages and counts are the log's business."""
    return Request({plan.ledger.name: plan.release for plan in plans})


def put_request(objects: Objects, name: str, request: Request) -> None:
    """In place of the last one."""
    data, before = request.to_json(), objects.get(name)
    written = objects.put(name, data) if before is None else objects.swap(name, data, before.tag)
    if not written:
        raise Unavailable("Another run of retention began at the same time; let it end.", object=name)
