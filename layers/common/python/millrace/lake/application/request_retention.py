"""Request retention: write down which positions the policies release now, where the retention job reads it."""

from __future__ import annotations

from collections.abc import Iterable

from millrace.lake.application.in_place import put_in_place
from millrace.lake.application.plan_retention import Plan
from millrace.lake.domain.retention import RetentionRequest
from millrace.lake.ports.objects import Objects
from millrace.ledger.domain.errors import Unavailable


def request_of(plans: Iterable[Plan]) -> RetentionRequest:
    """Every policy is told as the watermark it comes to now: ages and counts are the log's business."""
    return RetentionRequest({plan.ledger.name: plan.release for plan in plans})


def put_request(objects: Objects, name: str, request: RetentionRequest) -> None:
    """In place of the last one."""
    if not put_in_place(objects, name, request.to_json()):
        raise Unavailable("Another run of retention began at the same time; let it end.", object=name)
