"""Request retention: what the hub knows about a moment's policies and readers, in the form that the job takes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

from millrace.application.plan_retention import Plan
from millrace.domain.errors import Unavailable
from millrace.domain.retention import Policy, Request
from millrace.ports_lake import Objects


def request_of(plans: Iterable[Plan]) -> Request:
    """Every rule is told as the watermark it comes to now: ages and counts are the log's business, not the tables'."""
    policies: list[Policy] = []
    ceilings: dict[str, int] = {}
    for plan in plans:
        name, marks = plan.ledger.name, plan.watermarks
        policies.append(Policy(name, advance_to=marks.whole))
        policies += [Policy(name, partition, at) for partition, at in sorted(marks.partitions.items())]
        ceilings[name] = plan.limit
    return Request(policies, ceilings)


def put_request(objects: Objects, name: str, request: Request) -> None:
    """In place of the last one."""
    policies = [{key: value for key, value in asdict(one).items() if value is not None} for one in request.policies]
    data = json.dumps({"policies": policies, "ceilings": dict(request.ceilings)}, ensure_ascii=False).encode()
    before = objects.get(name)
    written = objects.put(name, data) if before is None else objects.swap(name, data, before.tag)
    if not written:
        raise Unavailable("Another run of retention began at the same time; let it end.", object=name)
