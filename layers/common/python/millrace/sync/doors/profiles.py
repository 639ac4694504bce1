"""Profiles of projects over HTTP: what an operator sets, and what holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millrace.runtime.http import Request, Response, to_json
from millrace.runtime.requests import whole

if TYPE_CHECKING:
    from millrace.ledger.application.audited import Audited
    from millrace.sync.application.set_profile import SetProfile

MOST_LISTED = 500
MOST_AFTER_BYTES = 512


def set_profile(profiles: SetProfile, audited: Audited, request: Request) -> Response:
    identity, project = request.identity(), request.path("project")
    request.only_query()
    request.noted.update(project=project)
    change = partial(profiles, identity, project, request.json())
    return Response(to_json(audited(identity, "profile_set", change, project=project)))


def read_profile(profiles: SetProfile, request: Request) -> Response:
    identity, project = request.identity(), request.path("project")
    request.only_query()
    request.noted.update(project=project)
    return Response(to_json(profiles.read(identity, project)))


def list_profiles(profiles: SetProfile, request: Request) -> Response:
    identity = request.identity()
    request.only_query("after", "max")
    limit = whole("max", request.query("max") or "100", 1, MOST_LISTED)
    after = (request.query("after") or "").encode()[:MOST_AFTER_BYTES].decode("utf-8", "ignore")
    return Response(to_json(profiles.list(identity, after, limit)))
