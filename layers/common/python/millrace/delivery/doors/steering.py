"""Steering over HTTP: how an operator looks into the deliveries of a target, and tries many of them again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millrace.runtime.http import Request, Response, to_json
from millrace.runtime.requests import flag_of

if TYPE_CHECKING:
    from millrace.delivery.application.inspect_deliveries import InspectDeliveries
    from millrace.delivery.application.manage_targets import ManageTargets
    from millrace.delivery.application.replay_range import ReplayRange
    from millrace.delivery.application.retry_many import RetryMany
    from millrace.ledger.application.audited import Audited


def list_targets(targets: ManageTargets, deliveries: InspectDeliveries, request: Request) -> Response:
    identity = request.identity()
    request.only_query("counts")
    counted = flag_of("counts", request.query("counts"))
    return Response(to_json(deliveries.list_counted(identity) if counted else targets.list(identity)))


def show_attempts(deliveries: InspectDeliveries, request: Request) -> Response:
    identity = request.identity()
    request.only_query("event_id")
    return Response(to_json(deliveries.attempts(identity, request.path("target_id"), request.query("event_id"))))


def retry_many(retry: RetryMany, audited: Audited, request: Request) -> Response:
    """A dry run changes nothing, so there is nothing to record."""
    identity, target_id, body = request.identity(), request.path("target_id"), request.json()
    act = partial(retry, identity, target_id, body)
    dry_run = isinstance(body, dict) and body.get("dry_run") is True
    answer = act() if dry_run else audited(identity, "target_retry", act, target_id=target_id)
    request.noted.update(matched=answer["matched"], retried=answer["retried"])
    return Response(to_json(answer))


def replay_range(replay: ReplayRange, audited: Audited, request: Request) -> Response:
    """A dry run changes nothing, so there is nothing to record."""
    identity, target_id, body = request.identity(), request.path("target_id"), request.json()
    act = partial(replay, identity, target_id, body)
    dry_run = isinstance(body, dict) and body.get("dry_run") is True
    answer = act() if dry_run else audited(identity, "target_replay", act, target_id=target_id)
    request.noted.update(matched=answer["matched"], replayed=answer["replayed"])
    return Response(to_json(answer))


def pause_target(targets: ManageTargets, audited: Audited, request: Request) -> Response:
    return _changed(targets, audited, request, "target_pause", paused=True)


def resume_target(targets: ManageTargets, audited: Audited, request: Request) -> Response:
    return _changed(targets, audited, request, "target_resume", paused=False)


def _changed(targets: ManageTargets, audited: Audited, request: Request, action: str, *, paused: bool) -> Response:
    identity, target_id = request.identity(), request.path("target_id")
    patch = partial(targets.patch, identity, target_id, {"paused": paused})
    return Response(to_json(audited(identity, action, patch, target_id=target_id)))
